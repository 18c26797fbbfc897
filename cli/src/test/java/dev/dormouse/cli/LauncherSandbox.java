package dev.dormouse.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.dormouse.testkit.Await;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/**
 * A checkout with the real launcher in it, on a machine where everything else is a stand-in: a PATH
 * with just the tools that it may use, and a JDK, Maven and Python that are shell scripts.
 */
final class LauncherSandbox implements AutoCloseable {
    /** All of them in Debian's base system. */
    private static final List<String> TOOLS =
            List.of(
                    "awk",
                    "basename",
                    "bash",
                    "cat",
                    "cut",
                    "dirname",
                    "du",
                    "env",
                    "find",
                    "flock",
                    "grep",
                    "head",
                    "mkdir",
                    "mv",
                    "readlink",
                    "realpath",
                    "rm",
                    "sed",
                    "sha256sum",
                    "sleep",
                    "sort",
                    "tail",
                    "timeout",
                    "uname",
                    "xargs");

    /** Prints how it was called, a line per argument. */
    private static final String ECHO_JAVA = "echo \"java=$0\"; printf '%s\\n' \"$@\"";

    /** Leaves a cache as the JVM does, unless the sandbox has a file {@code rehearsal-fails}. */
    private static final String FAKE_REHEARSAL =
            """
            if [[ ${@: -1} == rehearse ]]; then
                printf '%s\\n' "$@" > @/rehearsal.options
                echo $$ >> @/rehearsal.pids
                [[ ! -e @/rehearsal-fails ]] || exit 1
                while [[ -e @/rehearsal-waits ]]; do sleep 0.05; done
                for argument; do
                    [[ $argument == -XX:AOTCacheOutput=* ]] && echo x > "${argument#*=}"
                done
                exit 0
            fi
            """;

    private static final String FAKE_BUILD =
            """
            if [[ $1 == -v ]]; then echo 'Apache Maven 3.9.9 (abc)'; exit; fi
            echo "$*" >> @/maven.calls
            for argument; do
                [[ $argument == -Ddormouse.app=* ]] && app=${argument#*=}
            done
            [[ -n $app ]] && mkdir "$app" && touch "$app/a.jar" "$app/b.jar"
            """;

    private final Path directory;
    private final List<Process> started = new ArrayList<>();
    private final Map<String, String> environment = new TreeMap<>();

    /** What one run of the launcher left. */
    record Run(int status, List<String> out, List<String> err) {}

    /** A launcher that runs. */
    record Running(Process process, Path out, Path err) {
        Run await() throws IOException, InterruptedException {
            if (!process.waitFor(60, TimeUnit.SECONDS)) {
                throw new AssertionError("the launcher hangs; it said " + Files.readString(err));
            }
            return new Run(process.exitValue(), Files.readAllLines(out), Files.readAllLines(err));
        }

        void awaitErr(String text) {
            Await.until(
                    "\"" + text + "\" on standard error",
                    Duration.ofSeconds(30),
                    () -> read(err).contains(text),
                    () -> read(err));
        }
    }

    LauncherSandbox(Path directory) throws IOException {
        this.directory = directory;
        Files.createDirectories(checkout().resolve("cli/src/main"));
        Files.copy(Path.of("..", "dormouse"), checkout().resolve("dormouse"));
        Files.setPosixFilePermissions(
                checkout().resolve("dormouse"), PosixFilePermissions.fromString("rwxr-xr-x"));
        write("checkout/pom.xml", "<project/>");
        write("checkout/cli/pom.xml", "<project/>");
        write("checkout/cli/src/main/Source.java", "class Source {}");
        Files.createDirectories(directory.resolve("bin"));
        for (String tool : TOOLS) {
            Files.createSymbolicLink(directory.resolve("bin").resolve(tool), which(tool));
        }
        jdk("jdk", "25.0.3", ECHO_JAVA);
        script("bin/mvn", FAKE_BUILD);
        environment.put("PATH", directory.resolve("bin").toString());
        environment.put("HOME", directory.resolve("user").toString());
        environment.put("DORMOUSE_JAVA_HOME", directory.resolve("jdk").toString());
        environment.put("DORMOUSE_NIXL_DIR", "/nixl");
        environment.put("DORMOUSE_NVRTC_DIR", "/nvrtc");
        environment.put("DORMOUSE_MODEL", "/model.gguf");
    }

    private static Path which(String tool) {
        return List.of("/usr/bin/", "/bin/").stream()
                .map(folder -> Path.of(folder + tool))
                .filter(Files::isExecutable)
                .findFirst()
                .orElseThrow(() -> new AssertionError(tool + " is not in Debian's usual places"));
    }

    Path checkout() {
        return directory.resolve("checkout");
    }

    /** Where the launcher keeps what it fetched. */
    Path home() {
        return directory.resolve("user/.cache/dormouse");
    }

    void set(String variable, String value) {
        environment.put(variable, value);
    }

    void unset(String variable) {
        environment.remove(variable);
    }

    void write(String path, String text) throws IOException {
        Path file = directory.resolve(path);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
    }

    void remove(String path) throws IOException {
        Files.delete(directory.resolve(path));
    }

    /**
     * Writes a shell script, in which {@code @/} is the sandbox's folder. It has the machine's
     * tools at hand, not just the launcher's.
     */
    void script(String path, String body) throws IOException {
        write(path, "#!/bin/bash\nPATH=/usr/bin:/bin\n" + body.replace("@/", directory + "/"));
        Files.setPosixFilePermissions(
                directory.resolve(path), PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    /** A JDK as far as the launcher looks: a release file, javac, and a script for java. */
    void jdk(String path, String version, String java) throws IOException {
        write(path + "/release", "IMPLEMENTOR=\"Test\"\nJAVA_VERSION=\"" + version + "\"\n");
        script(path + "/bin/javac", "");
        script(path + "/bin/java", FAKE_REHEARSAL + java);
    }

    /**
     * A python3 whose {@code pip download} is the given script, with its {@code --dest} in $dest.
     */
    void pip(String download) throws IOException {
        script(
                "bin/python3",
                """
                [[ $* == "-m pip --version" ]] && exit
                while [[ $1 != --dest ]]; do shift; done
                dest=$2
                echo "$3" >> @/pip.calls
                """
                        + download);
    }

    /** Lines of a file that a stand-in wrote, none before it was called. */
    List<String> lines(String path) throws IOException {
        Path file = directory.resolve(path);
        return Files.exists(file) ? Files.readAllLines(file) : List.of();
    }

    /** The folders of jars that builds have left. */
    List<String> builds() throws IOException {
        try (var entries = Files.list(checkout().resolve("cli/target"))) {
            return entries.map(entry -> entry.getFileName().toString())
                    .filter(name -> name.startsWith("app-"))
                    .sorted()
                    .toList();
        }
    }

    Run run(String... arguments) throws IOException, InterruptedException {
        return start(arguments).await();
    }

    Running start(String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(checkout().resolve("dormouse").toString()));
        command.addAll(List.of(arguments));
        return startCommand(command);
    }

    Running startCommand(List<String> command) throws IOException {
        Path out = Files.createTempFile(directory, "out", "");
        Path err = Files.createTempFile(directory, "err", "");
        ProcessBuilder builder =
                new ProcessBuilder(command)
                        .directory(directory.toFile())
                        .redirectOutput(out.toFile())
                        .redirectError(err.toFile());
        builder.environment().clear();
        builder.environment().putAll(environment);
        Process process = builder.start();
        started.add(process);
        return new Running(process, out, err);
    }

    private static String read(Path file) {
        try {
            return Files.readString(file, UTF_8);
        } catch (IOException e) {
            return e.toString();
        }
    }

    /** Ends whatever a failed test left running, and removes the links out of the sandbox. */
    @Override
    public void close() throws IOException {
        for (Process process : started) {
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly();
        }
        for (String tool : TOOLS) {
            Files.deleteIfExists(directory.resolve("bin").resolve(tool));
        }
    }
}
