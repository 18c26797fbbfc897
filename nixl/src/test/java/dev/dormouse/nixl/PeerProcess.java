package dev.dormouse.nixl;

import dev.dormouse.testkit.ChildJvm;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Map;

/** Starts a {@link PeerMain} and talks to it. */
final class PeerProcess implements AutoCloseable {
    private final ChildJvm child;
    private final String greeting;
    private int exitValue = -1;

    private PeerProcess(ChildJvm child) {
        this.child = child;
        this.greeting = child.answer();
    }

    static PeerProcess start(String name) {
        return start(name, Map.of());
    }

    static PeerProcess start(String name, Map<String, String> environment) {
        return new PeerProcess(ChildJvm.start(name, PeerMain.class, environment, name));
    }

    static String java() {
        return Path.of(System.getProperty("java.home"), "bin", "java").toString();
    }

    String name() {
        return child.name();
    }

    /** The line that lists the UCX settings it applied. */
    String greeting() {
        return greeting;
    }

    String ask(String command) {
        return child.ask(command);
    }

    byte[] askBytes(String command) {
        return Base64.getDecoder().decode(ask(command));
    }

    long askNumber(String command) {
        return Long.parseLong(ask(command));
    }

    void load(NixlAgent agent) {
        ask("load " + Base64.getEncoder().encodeToString(agent.localMetadata()));
    }

    /** Blocks of the peer's region, one after the other from the start. */
    BlockList blocks(long lengthBytes, int count, long deviceId) {
        return BlockList.builder(MemoryType.DRAM)
                .addStrided(askNumber("address"), lengthBytes, lengthBytes, count, deviceId)
                .build();
    }

    /** Lets it neither run nor die. */
    void freeze() {
        child.freeze();
    }

    void thaw() {
        child.thaw();
    }

    void kill() {
        child.kill();
    }

    @Override
    public void close() {
        try (child) {
            exitValue = child.end();
        }
    }

    /** The exit code after {@link #close()}. */
    int exitValue() {
        return exitValue;
    }
}
