package dev.dormouse.simulation;

import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.PullConnector;
import dev.dormouse.connector.PushConnector;
import dev.dormouse.connector.SchedulerConnector;
import dev.dormouse.connector.Surroundings;
import dev.dormouse.connector.WorkerConnector;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.WakeTag;
import dev.dormouse.engine.core.ConnectorHalves;
import dev.dormouse.engine.core.Engines;
import dev.dormouse.engine.core.SteppedEngine;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.testkit.ModelCounts;
import dev.dormouse.testkit.ModelMemory;
import dev.dormouse.testkit.ModelTransport;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** One process of an engine, from its start to its death. */
final class EngineProcess {
    private final World world;
    private final EngineSpec spec;
    private final String label;
    private final List<ModelTransport> transports = new ArrayList<>();
    private final List<ModelMemory> pagesOfRanks = new ArrayList<>();
    private final Map<Integer, PagedMemory> memories = new HashMap<>();
    private final SteppedEngine engine;
    private boolean alive = true;
    private boolean stepping;
    private int conversations;

    /** Starts it; it serves when the call returns. */
    EngineProcess(World world, EngineSpec spec, int start, SplittableRandom random) {
        this.world = world;
        this.spec = spec;
        this.label = spec.name() + "#" + start;
        LongSupplier nanoClock = () -> world.clock().nanoTime() + spec.clockAhead().toNanos();
        ConnectorConfig config = world.tampering().settings(spec.connector(start)).build();
        List<WorkerConnector> workers = new ArrayList<>();
        for (int rank = 0; rank < spec.ranks(); rank++) {
            ModelMemory pages = new ModelMemory(PagedMemory.PAGE_BYTES);
            ModelTransport transport = world.fabric().open(label + "-rank-" + rank, pages);
            transport.faults().setRevocationDelay(Faults.REVOCATION);
            transports.add(transport);
            world.tampering().opened(transport);
            pagesOfRanks.add(pages);
            Surroundings around = surroundings(nanoClock);
            workers.add(
                    spec.push()
                            ? PushConnector.worker(config, rank, transport, around)
                            : PullConnector.worker(config, rank, transport, around));
        }
        stepping = true;
        try {
            engine =
                    SteppedEngine.open(
                            spec.engine(),
                            new ChainModel(spec.kvHeads(), spec.ranks()),
                            world.tampering()
                                    .halves(
                                            new ConnectorHalves(
                                                    scheduler(config, nanoClock), workers)),
                            new Engines.Surroundings(
                                    nanoClock,
                                    (rank, capacityBytes) -> {
                                        PagedMemory memory =
                                                new PagedMemory(
                                                        pagesOfRanks.get(rank), capacityBytes);
                                        memories.put(rank, memory);
                                        return world.tampering().memory(memory);
                                    },
                                    random,
                                    () -> {}));
        } finally {
            stepping = false;
        }
    }

    private SchedulerConnector scheduler(ConnectorConfig config, LongSupplier nanoClock) {
        Surroundings around = surroundings(nanoClock);
        return spec.push()
                ? PushConnector.scheduler(config, around)
                : PullConnector.scheduler(config, around);
    }

    private Surroundings surroundings(LongSupplier nanoClock) {
        return new Surroundings(
                nanoClock,
                world.clock().instant().getEpochSecond() << 20,
                world.network()::open,
                world.network()::dial,
                world.network().threads(this),
                world::whileBlocked);
    }

    EngineSpec spec() {
        return spec;
    }

    Engine engine() {
        return engine.engine();
    }

    EngineState state() {
        return engine.engine().state();
    }

    EngineStatistics statistics() {
        return engine.engine().statistics();
    }

    boolean isAlive() {
        return alive;
    }

    /** True while its thread is inside of a step, or of the close. */
    boolean isBusy() {
        return stepping;
    }

    /** A conversation of its threads begins or ends. */
    void converse(int change) {
        conversations += change;
    }

    /**
     * True while one of its threads is in a conversation. It must not wait for that now: the
     * conversation goes on only when its caller does.
     */
    boolean isConversing() {
        return conversations > 0;
    }

    List<ModelTransport> transports() {
        return transports;
    }

    PagedMemory memory(int rank) {
        return Objects.requireNonNull(memories.get(rank));
    }

    /** The error that ended its service, although no transition had failed, or null. */
    @Nullable Throwable failure() {
        return engine.failure();
    }

    /** One round of its loop; 0 if there was nothing to do, or its thread is not free. */
    int step() {
        if (stepping || !alive) {
            return 0;
        }
        stepping = true;
        try {
            return engine.step();
        } finally {
            stepping = false;
        }
    }

    /** Ends it as kill -9 does. */
    void kill() {
        alive = false;
        transports.forEach(transport -> world.fabric().kill(transport.agentName()));
        world.network().forget(this);
    }

    /** Ends it as SIGTERM does; a fault around it may make that end with an error. */
    void close() {
        stepping = true;
        try {
            engine.close();
        } catch (RuntimeException e) {
            if (!world.hasFaults()) {
                throw new Violation(this + " could not be closed", e);
            }
            world.log().add(this + " closed with an error: " + e.getMessage());
        } finally {
            stepping = false;
            alive = false;
            world.network().forget(this);
        }
    }

    /** Throws if what it holds does not fit the state that it says it is in. */
    void check() {
        if (stepping || !alive) {
            return;
        }
        Throwable failure = engine.failure();
        if (failure != null) {
            throw new Violation(this + " has failed by itself", failure);
        }
        if (state().phase() == Phase.FAILED && !world.hasFaults()) {
            throw new Violation(this + " has failed in a transition");
        }
        for (int rank = 0; rank < transports.size(); rank++) {
            if (world.tampering().checksMemory()) {
                checkMemory(rank);
                checkTruth(rank);
            }
        }
    }

    /** What it says of its tags is so, at every rank. */
    private void checkTruth(int rank) {
        EngineState says = state();
        PagedMemory memory = memory(rank);
        boolean kvAway = says.asleep().contains(WakeTag.KV_CACHE);
        boolean weightsAway = says.sleepLevel() == 2;
        switch (says.phase()) {
            case FALLING_ASLEEP, WAKING, FAILED, CLOSED -> {}
            case AWAKE, PAUSING, PAUSED, ASLEEP -> {
                if (memory.isAwake(MemoryTag.KV_CACHE) == kvAway
                        || memory.isAwake(MemoryTag.WEIGHTS) == weightsAway) {
                    throw new Violation(
                            "%s rank %d says %s of its memory, which has %d bytes"
                                    .formatted(this, rank, says.phase(), memory.residentBytes()));
                }
            }
        }
    }

    private void checkMemory(int rank) {
        PagedMemory memory = memory(rank);
        ModelCounts counts = transports.get(rank).counts();
        if (memory.residentBytes() != memory.dueBytes()) {
            throw new Violation(
                    "%s rank %d has %d bytes of pages, but %d are awake"
                            .formatted(this, rank, memory.residentBytes(), memory.dueBytes()));
        }
        boolean awake = memory.isAwake(MemoryTag.KV_CACHE);
        boolean fits = awake ? counts.registrations() == 1 : counts.equals(ModelCounts.NONE);
        if (!fits && state().phase() != Phase.FAILED) {
            throw new Violation(
                    "%s rank %d has its KV cache %s, but %s"
                            .formatted(this, rank, awake ? "awake" : "asleep", counts));
        }
    }

    @Override
    public String toString() {
        return label;
    }
}
