package dev.dormouse.transport.nixl;

import dev.dormouse.testkit.ChildJvm;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Starts an {@link EngineNode} and talks to it. */
final class EngineProcess implements AutoCloseable {
    private final ChildJvm child;

    private EngineProcess(ChildJvm child) {
        this.child = child;
    }

    /**
     * Starts one without waiting.
     *
     * @param port of the side channel, 0 for any
     */
    static EngineProcess start(
            Tls tls, String engineId, int port, int leaseSeconds, int readTimeoutSeconds) {
        return start(
                tls.name(),
                tls.environment(),
                engineId,
                port,
                leaseSeconds,
                readTimeoutSeconds,
                "pull");
    }

    /** Starts one that pushes, or is pushed to. */
    static EngineProcess startPushing(
            Tls tls, String engineId, int port, int leaseSeconds, int readTimeoutSeconds) {
        return start(
                tls.name(),
                tls.environment(),
                engineId,
                port,
                leaseSeconds,
                readTimeoutSeconds,
                "push");
    }

    /**
     * Starts one in a given environment.
     *
     * @param transport for messages
     * @param options the connector, {@code pull} or {@code push}, and others of {@link EngineNode}
     */
    static EngineProcess start(
            String transport,
            Map<String, String> environment,
            String engineId,
            int port,
            int leaseSeconds,
            int readTimeoutSeconds,
            String... options) {
        List<String> arguments = new ArrayList<>();
        arguments.add(engineId);
        arguments.add(Integer.toString(port));
        arguments.add(Integer.toString(leaseSeconds));
        arguments.add(Integer.toString(readTimeoutSeconds));
        arguments.addAll(List.of(options));
        return new EngineProcess(
                ChildJvm.start(
                        engineId + "-" + transport,
                        EngineNode.class,
                        environment,
                        arguments.toArray(String[]::new)));
    }

    ChildJvm process() {
        return child;
    }

    int port() {
        return Integer.parseInt(child.ask("port"));
    }

    /** Hands {@code count} prompts over, whose content follows from {@code first}; tells where. */
    String prefill(int first, int count) {
        return child.ask("prefill " + first + " " + count);
    }

    /** Orders the reads of what a {@link #prefill} told. */
    void decode(int first, String handOvers) {
        child.ask("decode " + first + " " + handOvers);
    }

    /**
     * As {@link #decode}; returns when the first read is about to be posted, once {@link #goOn}.
     */
    void begin(int first, String handOvers) {
        child.ask("begin " + first + " " + handOvers);
    }

    void goOn() {
        child.ask("go");
    }

    /** Waits until the client of every read has its answer; what became of them. */
    String await() {
        return child.ask("await");
    }

    /** Waits until nothing can write the blocks of any read; what became of them. */
    String settle() {
        return child.ask("settle");
    }

    /** A prompt from {@code owner} to here. */
    String read(EngineProcess owner, int seed) {
        decode(seed, owner.prefill(seed, 1));
        return await();
    }

    /** Lets its loop go round. */
    void steps(int count) {
        child.ask("steps " + count);
    }

    /** True if nobody has written where nothing is. */
    boolean unusedIsUntouched() {
        return Boolean.parseBoolean(child.ask("untouched"));
    }

    void sleep() {
        child.ask("sleep");
    }

    /** Sleeps without waiting for leases: takes back what nobody has read. */
    void revokeAndSleep() {
        child.ask("revoke");
    }

    /** Weights first, then the KV cache. */
    void wake() {
        child.ask("wake");
    }

    void wakeKvFirst() {
        child.ask("wake-kv-first");
    }

    /** The seed of the prompt whose bytes the last wrong read brought, or -1. */
    int content() {
        return Integer.parseInt(child.ask("content"));
    }

    int handshakes() {
        return Integer.parseInt(child.ask("handshakes"));
    }

    int freeBlocks() {
        return Integer.parseInt(child.ask("free"));
    }

    ProcessCounts counts() {
        return ProcessCounts.parse(child.ask("counts"));
    }

    @Override
    public void close() {
        child.close();
    }
}
