package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cli.fleet.TinyProcess;
import dev.dormouse.cli.serve.TinyModelFolder;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Whatever ends a running demonstration, here of a tiny model, nothing of it stays. */
class InterruptedDemoTest {
    private static final Duration LIMIT = Duration.ofMinutes(2);

    /** Inherited by every process of the demonstration, and by no other. */
    private final String mark = "DORMOUSE_TEST_MARK=" + UUID.randomUUID();

    @TempDir private Path directory;
    private Process demo;

    @BeforeEach
    void start() throws IOException {
        Natives.nixlDirectory();
        Path model = directory.resolve("tiny");
        TinyModelFolder.write(model);
        List<String> arguments = new ArrayList<>();
        arguments.addAll(List.of("demo", "--quick", "--tokens", "1", "--kv-cache-mib", "64"));
        arguments.addAll(List.of("--model", model.toString()));
        List<String> command = new ArrayList<>(TinyProcess.command(arguments));
        command.add(1, "-Djava.io.tmpdir=" + Files.createDirectory(directory.resolve("tmp")));
        // A session of its own, and so a process group: what a terminal's Ctrl-C reaches.
        command.addFirst("setsid");
        ProcessBuilder builder =
                new ProcessBuilder(command)
                        .redirectErrorStream(true)
                        .redirectOutput(directory.resolve("demo.log").toFile());
        String[] variable = mark.split("=", 2);
        builder.environment().put(variable[0], variable[1]);
        demo = builder.start();
    }

    @AfterEach
    void killWhatIsLeft() {
        running().forEach(pid -> ProcessHandle.of(pid).ifPresent(ProcessHandle::destroyForcibly));
    }

    /**
     * Signals a demonstration that has come so far.
     *
     * @param target what kill(1) gets before the process id: {@code -} for the whole group
     * @param count processes of the demonstration that run by then; more if it has gone on
     * @param log whose process is the latest of them
     * @param said what its log says by then
     */
    @ParameterizedTest
    @CsvSource({
        "INT, -, 4, router, Listening on",
        "TERM, '', 2, oracle, Listening on",
        "KILL, '', 2, oracle, ''"
    })
    void leavesNothingBehind(String signal, String target, int count, String log, String said)
            throws Exception {
        Await.until(
                "the demonstration's " + log,
                LIMIT,
                () -> hasSaid(log, said) && running().size() >= count,
                this::stillRunning);
        Set<Long> processes = running();
        Set<Path> sharedFiles = sharedFiles(processes);

        Process kill =
                new ProcessBuilder("kill", "-s", signal, "--", target + demo.pid())
                        .inheritIO()
                        .start();
        assertThat(kill.waitFor()).isZero();

        Await.until(
                "the end of all processes", LIMIT, () -> running().isEmpty(), this::stillRunning);
        assertThat(sharedFiles).noneMatch(Files::exists);
        // An ending process loses its environment first, and its memory a little later.
        Await.until(
                "the end of all shared segments",
                LIMIT,
                () -> sharedSegments(processes).isEmpty(),
                () -> String.join("\n", sharedSegments(processes)));
        if (!signal.equals("KILL")) { // which leaves no time to tidy up
            assertThat(directory.resolve("tmp")).isEmptyDirectory();
        }
    }

    private boolean hasSaid(String name, String text) {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.filter(f -> f.endsWith(name + ".log")).toList()) {
                return Files.readString(file).contains(text);
            }
            return false;
        } catch (IOException e) {
            throw new AssertionError("cannot look for " + name + "'s log", e);
        }
    }

    /** Processes that carry the mark and have not ended; a zombie has no environment any more. */
    private Set<Long> running() {
        Set<Long> found = new HashSet<>();
        ProcessHandle.allProcesses()
                .map(ProcessHandle::pid)
                .filter(pid -> read(Path.of("/proc", Long.toString(pid), "environ")).contains(mark))
                .forEach(found::add);
        return found;
    }

    private String stillRunning() {
        StringBuilder text = new StringBuilder();
        for (long pid : running()) {
            text.append(pid).append(' ');
            text.append(read(Path.of("/proc", Long.toString(pid), "cmdline")).replace('\0', ' '));
            text.append('\n');
        }
        return text + output();
    }

    /** Files in shared memory that the processes have mapped. */
    private static Set<Path> sharedFiles(Set<Long> processes) {
        Set<Path> files = new HashSet<>();
        for (long pid : processes) {
            read(Path.of("/proc", Long.toString(pid), "maps"))
                    .lines()
                    .filter(line -> line.contains(" /dev/shm/") && !line.endsWith(" (deleted)"))
                    .forEach(line -> files.add(Path.of(line.substring(line.indexOf("/dev/shm/")))));
        }
        return files;
    }

    /** System V segments that the processes made: the fifth column is the creator. */
    private static List<String> sharedSegments(Set<Long> processes) {
        return read(Path.of("/proc/sysvipc/shm"))
                .lines()
                .skip(1)
                .filter(line -> processes.contains(Long.valueOf(line.strip().split(" +", 6)[4])))
                .toList();
    }

    private String output() {
        return read(directory.resolve("demo.log"));
    }

    /** A file's text, or nothing if it is gone or another user's. */
    private static String read(Path file) {
        try {
            return new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        } catch (IOException e) {
            return "";
        }
    }
}
