package dev.dormouse.engine.core;

import dev.dormouse.connector.SchedulerConnector;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.EngineInfo;
import dev.dormouse.engine.kv.BlockManager;
import dev.dormouse.engine.output.TextDecoder;
import dev.dormouse.foreign.Libc;
import dev.dormouse.model.KvCacheShape;
import dev.dormouse.model.LanguageModel;
import dev.dormouse.model.tokenizer.IncrementalDecoder;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;

/** Wires and starts engines. */
public final class Engines {
    private static final Logger LOG = System.getLogger("dormouse.engine");

    private Engines() {}

    /**
     * What an engine takes from its surroundings, so that others can stand in for them.
     *
     * @param nanoClock as {@link System#nanoTime}
     * @param memory where its ranks' memory comes from
     * @param seeds seeds for sampling, and ids that nobody can guess
     * @param heapTrimmer gives heap and C heap that nobody needs back to the machine
     */
    public record Surroundings(
            LongSupplier nanoClock,
            RankMemory.Source memory,
            RandomGenerator seeds,
            Runnable heapTrimmer) {
        /** The machine's. */
        public static Surroundings ofMachine(EngineConfig config, MemoryFiles files) {
            return new Surroundings(
                    System::nanoTime,
                    MachineMemory.source(config.poisonWokenMemory(), System::nanoTime, files),
                    new SecureRandom(),
                    () -> {
                        System.gc();
                        Libc.trimHeap();
                    });
        }
    }

    /**
     * What an engine needs to know of text.
     *
     * @param endTokens the model's own end tokens
     * @param decoders makes a decoder for each sequence; it is told whether to leave out control
     *     tokens
     */
    record Text(Set<Integer> endTokens, Function<Boolean, TextDecoder> decoders) {}

    /**
     * Starts an engine: takes its memory, reads the weights, registers and publishes its KV cache.
     * Returns when it serves. Tokenizer and connector are asked for once memory and weights are
     * there, so that they may come about meanwhile.
     *
     * <p>Model and connector belong to the engine from the call on: it closes them, also when it
     * cannot start.
     *
     * @param model as many ranks as it has, the engine has
     * @param tokenizer the model's
     * @param connector moves KV to and from other engines, or null for an engine that works alone;
     *     asked again when the engine cannot start, with the same answer
     * @param files are told of the memory before the connector registers it
     * @throws IllegalArgumentException if the settings do not fit the model
     */
    public static Engine start(
            EngineConfig config,
            LanguageModel model,
            Supplier<Tokenizer> tokenizer,
            Supplier<@Nullable ConnectorHalves> connector,
            MemoryFiles files) {
        return start(config, model, tokenizer, connector, Surroundings.ofMachine(config, files));
    }

    /** As above, elsewhere. */
    public static Engine start(
            EngineConfig config,
            LanguageModel model,
            Supplier<Tokenizer> tokenizer,
            Supplier<@Nullable ConnectorHalves> connector,
            Surroundings surroundings) {
        LocalEngine engine;
        try {
            engine = assemble(config, model, () -> text(tokenizer.get()), connector, surroundings);
        } catch (RuntimeException | Error e) {
            closeAfter(e, model, connector);
            throw e;
        }
        engine.start();
        return engine;
    }

    private static void closeAfter(
            Throwable failure, LanguageModel model, Supplier<@Nullable ConnectorHalves> connector) {
        Cleanup cleanup = new Cleanup(failure);
        cleanup.run(() -> close(connector.get()));
        cleanup.run(model::close);
    }

    private static void close(@Nullable ConnectorHalves connector) {
        if (connector != null) {
            connector.close();
        }
    }

    private static Text text(Tokenizer tokenizer) {
        return new Text(
                tokenizer.endOfGeneration(),
                skipSpecial -> decoder(tokenizer.decoder(skipSpecial)));
    }

    private static TextDecoder decoder(IncrementalDecoder decoder) {
        return new TextDecoder() {
            @Override
            public String push(int tokenId) {
                return decoder.push(tokenId);
            }

            @Override
            public String finish() {
                return decoder.finish();
            }
        };
    }

    /**
     * An engine with memory and weights that is not started: its loop may also be driven step by
     * step.
     */
    static LocalEngine assemble(
            EngineConfig config,
            LanguageModel model,
            Supplier<Text> text,
            Supplier<@Nullable ConnectorHalves> connector,
            Surroundings surroundings) {
        KvCacheShape shape = model.kvCacheShape(config.blockTokens(), config.kvType());
        int kvBlocks = kvBlocks(config, shape.blockBytesAllLayers() * model.ranks());
        RankMemories memories = RankMemories.load(model, shape, kvBlocks, surroundings.memory());
        try {
            @Nullable ConnectorHalves halves = connector.get();
            List<Worker> workers = workers(model, halves, shape, kvBlocks, memories);
            return assemble(config, model, kvBlocks, workers, text.get(), halves, surroundings);
        } catch (RuntimeException | Error e) {
            memories.closeAfter(e);
            throw e;
        }
    }

    private static LocalEngine assemble(
            EngineConfig config,
            LanguageModel model,
            int kvBlocks,
            List<Worker> workers,
            Text text,
            @Nullable ConnectorHalves connector,
            Surroundings surroundings) {
        int liveLimit = config.maxSequences() + config.maxWaiting();
        Inbox inbox = new Inbox(LocalEngine.inboxCapacity(liveLimit));
        workers.forEach(worker -> worker.wakeWith(inbox::wake));
        EngineCore.Parts parts =
                parts(
                        config,
                        new Ranks(model, workers),
                        kvBlocks,
                        intake(config, model, text, surroundings),
                        connector == null ? null : connector.scheduler(),
                        inbox,
                        surroundings);
        EngineInfo info =
                new EngineInfo(
                        config.servedModelName(),
                        model.config(),
                        config.maxModelLength(),
                        kvBlocks,
                        config.blockTokens(),
                        config.sleepMode());
        return new LocalEngine(
                info, new EngineCore(parts), inbox, parts.life(), parts.statistics(), liveLimit);
    }

    private static EngineCore.Parts parts(
            EngineConfig config,
            Ranks ranks,
            int kvBlocks,
            Intake intake,
            @Nullable SchedulerConnector connector,
            Inbox inbox,
            Surroundings surroundings) {
        BlockManager blocks =
                new BlockManager(kvBlocks, config.blockTokens(), config.prefixCaching());
        Counters counters = new Counters();
        RemoteKv remote = new RemoteKv(connector, blocks);
        Scheduler scheduler = new Scheduler(config, blocks, remote, counters);
        Lobby lobby = new Lobby();
        StatisticsBoard statistics =
                new StatisticsBoard(
                        () -> snapshot(scheduler, lobby, remote, blocks, counters, connector),
                        new TransferLog(
                                surroundings.nanoClock(), line -> LOG.log(Level.INFO, line)));
        SleepCoordinator coordinator =
                new SleepCoordinator(
                        ranks.workers(),
                        connector,
                        scheduler,
                        surroundings.heapTrimmer(),
                        surroundings.nanoClock());
        Lifecycle life = new Lifecycle(scheduler, coordinator, config.holdRequestsWhileAsleep());
        Transitions transitions =
                new Transitions(
                        config.sleepMode(),
                        life,
                        scheduler,
                        remote,
                        coordinator,
                        statistics,
                        surroundings.nanoClock());
        return new EngineCore.Parts(
                inbox,
                intake,
                lobby,
                scheduler,
                remote,
                ranks,
                connector,
                life,
                transitions,
                coordinator,
                counters,
                statistics);
    }

    private static Intake intake(
            EngineConfig config, LanguageModel model, Text text, Surroundings surroundings) {
        return new Intake(
                config,
                model.config().vocabularySize(),
                text.endTokens(),
                text.decoders(),
                surroundings.seeds());
    }

    private static StatisticsBoard.Snapshot snapshot(
            Scheduler scheduler,
            Lobby lobby,
            RemoteKv remote,
            BlockManager blocks,
            Counters counters,
            @Nullable SchedulerConnector connector) {
        return new StatisticsBoard.Snapshot(
                scheduler.runningCount(),
                scheduler.waitingCount() + lobby.size(),
                remote.receivingCount(),
                remote.heldCount(),
                remote.heldBlocks(),
                remote.quarantinedBlocks(),
                blocks.blocks(),
                blocks.freeBlocks(),
                counters.promptTokens,
                counters.computedPromptTokens,
                counters.remotePromptTokens,
                counters.remoteFirstTokens,
                counters.generatedTokens,
                counters.preemptions,
                counters.prefixCacheQueries,
                counters.prefixCacheHits,
                connector == null ? 0 : connector.epoch());
    }

    private static List<Worker> workers(
            LanguageModel model,
            @Nullable ConnectorHalves connector,
            KvCacheShape shape,
            int kvBlocks,
            RankMemories memories) {
        List<Worker> workers = new ArrayList<>();
        for (int rank = 0; rank < model.ranks(); rank++) {
            workers.add(
                    new Worker(
                            rank,
                            model,
                            connector == null ? null : connector.workers().get(rank),
                            shape,
                            kvBlocks,
                            memories.get(rank)));
        }
        return workers;
    }

    private static int kvBlocks(EngineConfig config, long blockBytes) {
        long blocks = config.kvCacheBytes() / blockBytes;
        if (blocks < 1 || blocks > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "KV cache memory of %d bytes holds %d blocks of %d bytes, but must hold 1 to %d; change --kv-cache-memory"
                            .formatted(
                                    config.kvCacheBytes(), blocks, blockBytes, Integer.MAX_VALUE));
        }
        // The last token of an output is never computed.
        long needed = Math.ceilDiv(config.maxModelLength() - 1, config.blockTokens());
        if (needed > blocks) {
            throw new IllegalArgumentException(
                    "one sequence of --max-model-len %d tokens needs %d KV blocks, %d bytes, but --kv-cache-memory of %d bytes holds %d; raise --kv-cache-memory, or lower --max-model-len to %d"
                            .formatted(
                                    config.maxModelLength(),
                                    needed,
                                    needed * blockBytes,
                                    config.kvCacheBytes(),
                                    blocks,
                                    blocks * config.blockTokens() + 1));
        }
        return (int) blocks;
    }
}
