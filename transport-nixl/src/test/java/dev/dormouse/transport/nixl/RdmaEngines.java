package dev.dormouse.transport.nixl;

import dev.dormouse.testkit.ChildJvm;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Starts engines that reach each other by RDMA verbs only, and ends them. Scenarios share one pair,
 * since a JVM takes long to start on an emulated processor.
 */
final class RdmaEngines implements AutoCloseable {
    /** Of {@link KvBlocks}; its only registration. */
    static final long KV_KIB = 16 << 10;

    /** What of the free memory may come and go by itself. */
    static final long NOISE_KIB = 4 << 10;

    private static final int LEASE_SECONDS = 60;
    private static final int READ_TIMEOUT_SECONDS = 120;

    /** What becomes of a read that is as it should be. */
    static final String GOOD = "{GOOD=1}";

    private static final int FIRST_READS = 8;

    /** Options of the engines' JVMs, whose heap must not grow by itself. */
    private static final String JVM =
            "-Xms64m -XX:+AlwaysPreTouch -Ddormouse.test.patience="
                    + ChildJvm.PATIENCE
                    + " -Ddormouse.test.idle.nanos=5000000"
                    // moving the class archive takes seconds under emulation
                    + " -XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
                    // so do classes that are made for each native call
                    + " -Djdk.internal.foreign.DowncallLinker.USE_SPEC=false";

    private final Deque<EngineProcess> started = new ArrayDeque<>();
    private int nextSeed = 1;
    private @Nullable EngineProcess owner;
    private @Nullable EngineProcess reader;

    /** The one that most scenarios read from; started when it is first asked for. */
    EngineProcess owner() {
        if (owner == null || !owner.process().isAlive()) {
            owner = start(Map.of(), "P", 0, "pull");
        }
        return owner;
    }

    /** The one that reads from all owners; started when it is first asked for. */
    EngineProcess reader() {
        if (reader == null || !reader.process().isAlive()) {
            reader = start(Map.of(), "D", 0, "pull");
        }
        return reader;
    }

    /**
     * Starts an engine.
     *
     * @param settings of UCX, besides those that choose verbs
     * @param port of the side channel, 0 for any
     * @param options the connector and what {@link EngineNode} takes
     */
    EngineProcess start(
            Map<String, String> settings, String engineId, int port, String... options) {
        Map<String, String> environment = new LinkedHashMap<>(verbs());
        environment.putAll(settings);
        EngineProcess engine =
                EngineProcess.start(
                        "verbs",
                        environment,
                        engineId,
                        port,
                        LEASE_SECONDS,
                        READ_TIMEOUT_SECONDS,
                        options);
        started.add(engine);
        return engine;
    }

    /**
     * Nothing that lets a peer's processor copy bytes; and no bounce buffers, which UCX prefers on
     * a slow device, and which would hide a stale registration of the reader's.
     */
    private static Map<String, String> verbs() {
        return Map.of(
                "UCX_TLS", "rc_verbs,ud_verbs",
                "UCX_NET_DEVICES", "rxe0:1",
                "UCX_ZCOPY_THRESH", "0",
                "UCX_LOG_LEVEL", "error",
                "MALLOC_ARENA_MAX", "1",
                "JDK_JAVA_OPTIONS", JVM);
    }

    /**
     * Has the reader connect. The first try may fail: on an emulated processor a JVM that has just
     * started takes longer to answer than a peer waits.
     *
     * @return what became of the last try
     */
    String connect(EngineProcess owner, EngineProcess reader) {
        String outcome = "";
        for (int i = 0; i < FIRST_READS && !outcome.equals(GOOD); i++) {
            outcome = read(owner, reader);
        }
        return outcome;
    }

    /** Moves a prompt that there was not before; what became of it. */
    String read(EngineProcess owner, EngineProcess reader) {
        return reader.read(owner, nextPrompts(1));
    }

    /** The seed of the first of so many prompts that there were not before. */
    int nextPrompts(int count) {
        int first = nextSeed;
        nextSeed += count;
        return first;
    }

    /** What they printed last. */
    String output() {
        return started.stream()
                .map(EngineProcess::process)
                .map(process -> "--- " + process.name() + "\n" + process.output())
                .collect(Collectors.joining("\n"));
    }

    @Override
    public void close() {
        started.forEach(EngineProcess::close);
        started.clear();
    }
}
