package dev.dormouse.cli.doctor;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * The machine as the checks see it. What cannot be read counts as not there: a doctor reports what
 * it finds and never fails itself.
 *
 * @param root where the file system starts, {@code /} but in tests
 * @param environment the process's environment
 * @param commands runs a program
 */
record Machine(Path root, Map<String, String> environment, Commands commands) {
    private static final long COMMAND_LIMIT_SECONDS = 20;

    /** Runs a program and returns its standard output, or empty when it could not or failed. */
    @FunctionalInterface
    interface Commands {
        Optional<String> output(List<String> command);
    }

    static Machine local() {
        return new Machine(Path.of("/"), System.getenv(), Machine::run);
    }

    Optional<String> variable(String name) {
        return Optional.ofNullable(environment.get(name)).filter(value -> !value.isBlank());
    }

    Optional<String> output(String... command) {
        return commands.output(List.of(command));
    }

    boolean exists(String absolutePath) {
        return Files.exists(at(absolutePath));
    }

    Optional<String> text(String absolutePath) {
        try {
            return Optional.of(Files.readString(at(absolutePath), StandardCharsets.UTF_8));
        } catch (IOException e) {
            return Optional.empty();
        }
    }

    /** The names in a folder, sorted; none when there is no such folder. */
    List<String> names(String absolutePath) {
        try (Stream<Path> entries = Files.list(at(absolutePath))) {
            return entries.map(entry -> entry.getFileName().toString()).sorted().toList();
        } catch (IOException e) {
            return List.of();
        }
    }

    Path at(String absolutePath) {
        return root.resolve(root.relativize(root.resolve("./" + absolutePath).normalize()));
    }

    /** Only for short outputs: what does not fit into the pipe looks like a program that hangs. */
    private static Optional<String> run(List<String> command) {
        ProcessBuilder builder =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD);
        builder.environment().put("LC_ALL", "C");
        try {
            Process process = builder.start();
            if (!process.waitFor(COMMAND_LIMIT_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                return Optional.empty();
            }
            byte[] output = process.getInputStream().readAllBytes();
            return process.exitValue() == 0
                    ? Optional.of(new String(output, StandardCharsets.UTF_8))
                    : Optional.empty();
        } catch (IOException e) {
            return Optional.empty();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Optional.empty();
        }
    }
}
