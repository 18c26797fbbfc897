package dev.dormouse.testkit;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The child's half of a {@link ChildJvm}: takes the parent's commands, one a line, and answers each
 * with one line. Logs of Java go to standard error from now on; native code may still write to
 * standard output, between the answers.
 */
public final class ParentLink {
    /** What tells an answer from whatever native libraries print. */
    static final String ANSWER = "=> ";

    private final PrintStream answers = System.out;
    private final BlockingQueue<String> commands = new LinkedBlockingQueue<>();
    private volatile boolean ended;

    private ParentLink() {}

    /** Opens it; once, first thing in {@code main}. */
    public static ParentLink open() {
        ParentLink link = new ParentLink();
        System.setOut(System.err);
        Thread.ofPlatform().name("dormouse-test-commands").daemon().start(link::read);
        return link;
    }

    /** The next command, or null if none has come. */
    public @Nullable String poll() {
        return commands.poll();
    }

    /** Waits for the next command; null if the parent has ended, or wants this process to end. */
    public @Nullable String take() {
        try {
            String command = null;
            while (command == null && !isEnded()) {
                command = commands.poll(50, TimeUnit.MILLISECONDS);
            }
            return command;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return null;
        }
    }

    /** True if no command is left, and none will come. */
    public boolean isEnded() {
        return ended && commands.isEmpty();
    }

    /** Answers a command. */
    public void answer(String line) {
        answers.println(ANSWER + line);
        answers.flush();
    }

    private void read() {
        try (BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                commands.add(line);
            }
        } catch (IOException e) {
            commands.clear(); // the parent is gone, and so is whoever waits for answers
        } finally {
            ended = true;
        }
    }
}
