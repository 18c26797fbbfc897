package dev.dormouse.nixl;

import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Starts a {@link PeerMain} and talks to it. */
final class PeerProcess implements AutoCloseable {
    private final Process process;
    private final PrintStream commands;
    private final BufferedReader answers;
    private final String greeting;
    private final String name;

    private PeerProcess(String name, Process process) {
        this.name = name;
        this.process = process;
        this.commands = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
        this.answers = process.inputReader(StandardCharsets.UTF_8);
        this.greeting = readLine();
    }

    static PeerProcess start(String name) {
        return start(name, Map.of());
    }

    static PeerProcess start(String name, Map<String, String> environment) {
        ProcessBuilder builder =
                new ProcessBuilder(
                        java(),
                        "-Xmx128m",
                        "-XX:+UseSerialGC",
                        "-XX:TieredStopAtLevel=1",
                        "--enable-native-access=ALL-UNNAMED",
                        "-Ddormouse.nixl.dir=" + Natives.nixlDirectory(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        PeerMain.class.getName(),
                        name);
        builder.environment().putAll(environment);
        builder.redirectError(ProcessBuilder.Redirect.INHERIT);
        try {
            return new PeerProcess(name, builder.start());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static String java() {
        return Path.of(System.getProperty("java.home"), "bin", "java").toString();
    }

    String name() {
        return name;
    }

    /** The line that lists the UCX settings it applied. */
    String greeting() {
        return greeting;
    }

    String ask(String command) {
        commands.println(command);
        return readLine();
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
        signal("-STOP");
    }

    void thaw() {
        signal("-CONT");
    }

    void kill() {
        process.destroyForcibly();
        Await.until("death of " + name, () -> !process.isAlive());
    }

    @Override
    public void close() {
        commands.close();
        try {
            if (!process.waitFor(20, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw new AssertionError("peer " + name + " did not end");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            process.destroyForcibly();
        }
    }

    /** The exit code after {@link #close()}. */
    int exitValue() {
        return process.exitValue();
    }

    private void signal(String which) {
        try {
            Process kill =
                    new ProcessBuilder(List.of("kill", which, Long.toString(process.pid())))
                            .inheritIO()
                            .start();
            if (kill.waitFor() != 0) {
                throw new AssertionError("kill " + which + " failed");
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }

    private String readLine() {
        try {
            String line = answers.readLine();
            if (line == null) {
                throw new AssertionError("peer " + name + " died; see its standard error above");
            }
            return line;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
