package dev.dormouse.cli.fleet;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A process of a fleet: this JVM's own command, with another subcommand.
 *
 * <p>A child ends when its standard input closes, so it outlives its parent in no case, not even if
 * the parent is killed.
 */
public final class ChildProcess implements AutoCloseable {
    /**
     * What a serving process prints once it answers requests. The line may be seen half written:
     * the address is whole once something follows it.
     */
    static final Pattern READY = Pattern.compile("^Listening on (http://\\S+) ", Pattern.MULTILINE);

    /** What an engine prints before that. */
    private static final Pattern ADMIN =
            Pattern.compile("^Sleep, wake, pause and resume on (http://\\S+)", Pattern.MULTILINE);

    private static final Duration READY_LIMIT = Duration.ofSeconds(90);
    private static final Duration STOP_LIMIT = Duration.ofSeconds(5);
    private static final long POLL_MILLIS = 50;

    private final String name;
    private final Process process;
    private final Path log;

    private ChildProcess(String name, Process process, Path log) {
        this.name = name;
        this.process = process;
        this.log = log;
    }

    /** Starts a child; its output goes to {@code NAME.log} in {@code logs}. */
    public static ChildProcess start(String name, Path logs, List<String> arguments) {
        return start(name, logs, Map.of(), arguments);
    }

    /** As above, with variables added to this process's environment. */
    public static ChildProcess start(
            String name, Path logs, Map<String, String> environment, List<String> arguments) {
        return launch(name, logs, environment, command(arguments));
    }

    /** As above, by a whole command. */
    static ChildProcess launch(
            String name, Path logs, Map<String, String> environment, List<String> whole) {
        List<String> command = new ArrayList<>(whole);
        command.add("--exit-with-parent");
        Path log = logs.resolve(name + ".log");
        try {
            ProcessBuilder builder =
                    new ProcessBuilder(command)
                            .redirectErrorStream(true)
                            .redirectOutput(log.toFile());
            builder.environment().putAll(environment);
            return new ChildProcess(name, builder.start(), log);
        } catch (IOException e) {
            throw new FleetException("cannot start " + name + ": " + e.getMessage(), e);
        }
    }

    /** This JVM's own command, with other arguments. */
    public static List<String> command(List<String> arguments) {
        List<String> command = new ArrayList<>();
        command.add(ProcessHandle.current().info().command().orElse("java"));
        command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
        command.addAll(
                List.of("-cp", System.getProperty("java.class.path"), "dev.dormouse.cli.Main"));
        command.addAll(arguments);
        return command;
    }

    /** Waits until the child says where it listens. */
    public URI awaitReady() {
        return URI.create(await(READY));
    }

    /**
     * Waits for something that the child prints.
     *
     * @return what the pattern's first group has found
     */
    public String await(Pattern line) {
        long deadline = System.nanoTime() + READY_LIMIT.toNanos();
        while (System.nanoTime() - deadline < 0) {
            String output = output();
            String found = find(line, output);
            if (found != null) {
                return found;
            }
            if (!process.isAlive()) {
                throw new FleetException(
                        name
                                + " ended with status "
                                + process.exitValue()
                                + " while starting:\n"
                                + output);
            }
            pause();
        }
        throw new FleetException(
                name + " was not ready within " + READY_LIMIT.toSeconds() + " s:\n" + output());
    }

    /** Where an engine that is ready takes the calls that put it to sleep and wake it. */
    public URI admin() {
        Matcher line = ADMIN.matcher(output());
        if (!line.find()) {
            throw new FleetException(name + " does not say where it takes sleep and wake");
        }
        return URI.create(line.group(1));
    }

    /** What the pattern's first group finds in a process's output, or null if it does not yet. */
    static @Nullable String find(Pattern line, String output) {
        Matcher found = line.matcher(output);
        return found.find() ? found.group(1) : null;
    }

    public String name() {
        return name;
    }

    public long pid() {
        return process.pid();
    }

    /** Ends the process as a crash would, with no chance to say goodbye. */
    public void kill() {
        process.destroyForcibly();
    }

    private String output() {
        try {
            return Files.readString(log);
        } catch (IOException e) {
            throw new FleetException("cannot read " + log + ": " + e.getMessage(), e);
        }
    }

    /**
     * Tells the process to end, and kills it if it has not by the limit.
     *
     * @return its exit status
     */
    public int end(Duration limit) {
        process.destroy();
        try {
            if (!process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS)) {
                process.destroyForcibly();
            }
            return process.waitFor();
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
            throw new FleetException("interrupted", e);
        }
    }

    @Override
    public void close() {
        var _ = end(STOP_LIMIT);
    }

    private static void pause() {
        try {
            TimeUnit.MILLISECONDS.sleep(POLL_MILLIS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new FleetException("interrupted", e);
        }
    }
}
