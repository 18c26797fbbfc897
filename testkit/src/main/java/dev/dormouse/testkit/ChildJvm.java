package dev.dormouse.testkit;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Another process of a test: a JVM with the test's class path, driven by lines (see {@link
 * ParentLink}). No wait is without an end, every failure shows what the child printed, and {@link
 * #close} ends the child whatever state it is in, also when it is stopped.
 */
public final class ChildJvm implements AutoCloseable {
    /** How many times as long as usual things may take, such as on an emulated processor. */
    public static final int PATIENCE = Integer.getInteger("dormouse.test.patience", 1);

    private static final Duration ANSWER_LIMIT = Duration.ofSeconds(45L * PATIENCE);
    private static final Duration END_LIMIT = Duration.ofSeconds(20L * PATIENCE);
    private static final int MAX_LINES = 200;
    private static final String END_OF_OUTPUT = "end of output";

    private final String name;
    private final Process process;
    private final PrintStream commands;
    private final BlockingQueue<String> answers = new LinkedBlockingQueue<>();
    private final Deque<String> printed = new ArrayDeque<>();
    private boolean hangs;

    private ChildJvm(String name, Process process) {
        this.name = name;
        this.process = process;
        this.commands = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
        Thread.ofPlatform().name("dormouse-test-" + name).daemon().start(this::read);
    }

    /**
     * Starts a JVM and does not wait until it is up.
     *
     * @param name for messages
     * @param main has a {@code main} that opens a {@link ParentLink}
     * @param environment added to this process's
     * @param arguments of {@code main}
     */
    public static ChildJvm start(
            String name, Class<?> main, Map<String, String> environment, String... arguments) {
        List<String> command =
                new ArrayList<>(
                        List.of(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "-Xmx128m",
                                "-XX:+UseSerialGC",
                                "-XX:TieredStopAtLevel=1",
                                "--enable-native-access=ALL-UNNAMED",
                                "-Ddormouse.nixl.dir=" + Natives.nixlDirectory(),
                                "-cp",
                                System.getProperty("java.class.path"),
                                main.getName()));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(environment);
        try {
            return new ChildJvm(name, builder.start());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The name for messages. */
    public String name() {
        return name;
    }

    /** Sends a command and waits for its answer. */
    public String ask(String command) {
        tell(command);
        return answer();
    }

    /** Sends a command; its {@link #answer} is to be taken later. */
    public void tell(String command) {
        commands.println(command);
    }

    /**
     * Waits for the next answer.
     *
     * @throws AssertionError with the child's output if none comes in time, or it has died
     */
    public String answer() {
        if (hangs) {
            throw failure("gave no answer before");
        }
        try {
            String answer = answers.poll(ANSWER_LIMIT.toSeconds(), TimeUnit.SECONDS);
            if (answer == null) {
                hangs = true;
                throw failure("gave no answer within " + ANSWER_LIMIT);
            }
            if (answer.equals(END_OF_OUTPUT)) {
                answers.add(END_OF_OUTPUT);
                awaitEnd();
                throw failure("died with status " + process.exitValue());
            }
            return answer;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw failure("was interrupted");
        }
    }

    /** Its process id. */
    public long pid() {
        return process.pid();
    }

    /** True as long as the process is there, stopped or not. */
    public boolean isAlive() {
        return process.isAlive();
    }

    /**
     * Lets it neither run nor die ({@code SIGSTOP}), until {@link #thaw}. Returns when each of its
     * threads stands still: one takes the signal and stops the others, once it has a processor.
     */
    public void freeze() {
        signal("STOP");
        Await.until(name + " stands still", this::isFrozen);
    }

    private boolean isFrozen() {
        try (Stream<Path> threads = Files.list(Path.of("/proc", Long.toString(pid()), "task"))) {
            return threads.allMatch(ChildJvm::isFrozen);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** By the state after the name, which stands in parentheses (proc_pid_stat(5)). */
    private static boolean isFrozen(Path thread) {
        try {
            String stat = Files.readString(thread.resolve("stat"));
            return stat.startsWith("T", stat.lastIndexOf(')') + 2);
        } catch (IOException e) { // it has ended
            return true;
        }
    }

    /** Lets it run again. */
    public void thaw() {
        signal("CONT");
    }

    /** Kills it with {@code SIGKILL}, and waits for its end. */
    public void kill() {
        process.destroyForcibly();
        awaitEnd();
    }

    /**
     * Ends its input, so that it ends.
     *
     * @return its exit status
     * @throws AssertionError with its output if it does not end
     */
    public int end() {
        commands.close();
        awaitEnd();
        return process.exitValue();
    }

    /** The last lines that it printed, answers left out. */
    public String output() {
        synchronized (printed) {
            return String.join("\n", printed);
        }
    }

    /** Kills it if it is still there. */
    @Override
    public void close() {
        process.destroyForcibly();
        commands.close();
        awaitEnd();
    }

    private void awaitEnd() {
        try {
            if (!process.waitFor(END_LIMIT.toSeconds(), TimeUnit.SECONDS)) {
                process.destroyForcibly();
                throw failure("did not end within " + END_LIMIT);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            process.destroyForcibly();
            throw failure("was interrupted");
        }
    }

    private void signal(String which) {
        try {
            Process kill =
                    new ProcessBuilder("kill", "-" + which, Long.toString(process.pid()))
                            .inheritIO()
                            .start();
            if (kill.waitFor() != 0) {
                throw failure("could not be sent SIG" + which);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw failure("was interrupted");
        }
    }

    private AssertionError failure(String what) {
        return new AssertionError("child " + name + " " + what + "; its last output:\n" + output());
    }

    private void read() {
        try (BufferedReader lines = process.inputReader(StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (line.startsWith(ParentLink.ANSWER)) {
                    answers.add(line.substring(ParentLink.ANSWER.length()));
                } else {
                    note(line);
                }
            }
        } catch (IOException e) {
            note(e.toString());
        } finally {
            answers.add(END_OF_OUTPUT);
        }
    }

    private void note(String line) {
        synchronized (printed) {
            if (printed.size() == MAX_LINES) {
                printed.removeFirst();
            }
            printed.addLast(line);
        }
    }
}
