package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Addressing;
import dev.dormouse.testkit.ModelFabric;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * Engines, their network and their clock, all on the test's thread: the connector's production code
 * over model memory and a model transport.
 */
final class ModelWorld {
    private static final long TICK_NANOS = Duration.ofMillis(1).toNanos();
    private static final int MAX_TICKS = 2_000;

    private final ModelFabric fabric;
    private final ModelSideChannels sideChannels = new ModelSideChannels();
    private final ModelExecutor handshakes = new ModelExecutor();
    private final List<ModelEngine> engines = new ArrayList<>();
    private long nowNanos = 1_000_000_000L;
    private int agents;

    /** A world whose network is like RDMA. */
    ModelWorld() {
        this(Addressing.PAGES);
    }

    ModelWorld(Addressing addressing) {
        fabric = new ModelFabric(this::nanoTime, addressing);
    }

    long nanoTime() {
        return nowNanos;
    }

    ModelFabric fabric() {
        return fabric;
    }

    ModelSideChannels sideChannels() {
        return sideChannels;
    }

    ModelExecutor handshakes() {
        return handshakes;
    }

    /** What a connector on the world's clock works with. */
    Surroundings surroundings() {
        return surroundings(this::nanoTime);
    }

    /** What a connector with a clock of its own works with. */
    Surroundings surroundings(LongSupplier nanoClock) {
        return surroundings(nanoClock, handshakes);
    }

    Surroundings surroundings(LongSupplier nanoClock, HandshakeThreads threads) {
        return new Surroundings(
                nanoClock, 0, sideChannels::open, sideChannels::dial, threads, this::tick);
    }

    String nextAgentName() {
        return "agent-" + agents++;
    }

    /** Starts an engine with defaults. */
    ModelEngine start(String engineId) {
        return start(config(engineId));
    }

    /** Starts an engine. */
    ModelEngine start(ConnectorConfig.Builder config) {
        return start(config, Duration.ZERO);
    }

    /** Starts an engine whose clock is ahead of the world's. */
    ModelEngine start(ConnectorConfig.Builder config, Duration ahead) {
        ModelEngine engine = new ModelEngine(this, config.build(), ahead);
        engines.add(engine);
        engine.start();
        return engine;
    }

    /** Settings that a test may still change. */
    ConnectorConfig.Builder config(String engineId) {
        return ConnectorConfig.builder(ModelEngine.FACTORS, ModelEngine.BLOCK_TOKENS)
                .engineId(engineId)
                .instanceId(engineId + "-instance-" + engines.size())
                .bindHost("127.0.0.1")
                .sideChannelPort(0);
    }

    /** The same for an engine that pushes. */
    ConnectorConfig.Builder pushConfig(String engineId) {
        return ConnectorConfig.builder(ModelEngine.FACTORS.pushed(), ModelEngine.BLOCK_TOKENS)
                .engineId(engineId)
                .instanceId(engineId + "-instance-" + engines.size())
                .bindHost("127.0.0.1")
                .sideChannelPort(0);
    }

    void forget(ModelEngine engine) {
        engines.remove(engine);
    }

    /** Time passes, and nothing else happens. */
    void elapse(Duration duration) {
        nowNanos += duration.toNanos();
    }

    /** One millisecond: one handshake runs, every engine makes a step. */
    void tick() {
        nowNanos += TICK_NANOS;
        boolean _ = handshakes.runNext();
        for (ModelEngine engine : List.copyOf(engines)) {
            engine.step();
        }
    }

    /** Ticks until the engine's first rank has begun a read. */
    void tickUntilReading(ModelEngine reader) {
        for (int i = 0; reader.rank().transport().counts().transfers() == 0; i++) {
            tick();
            assertThat(i).as("ticks until a read begins").isLessThan(20);
        }
    }

    /** Lets everything that is under way come to its end. */
    void settle() {
        for (int quiet = 0, ticks = 0; quiet < 5; ticks++) {
            int before = sideChannels.conversations();
            tick();
            boolean busy =
                    before != sideChannels.conversations()
                            || handshakes.pending() > 0
                            || engines.stream().anyMatch(ModelEngine::isReading);
            quiet = busy ? 0 : quiet + 1;
            if (ticks > MAX_TICKS) {
                throw new AssertionError("the world does not come to rest");
            }
        }
    }
}
