package dev.dormouse.cli.demo;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.fleet.Json;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/**
 * OpenAI's Python client, in an environment of its own below {@code target}, which the first run
 * makes. Where it cannot be had, the test that asks for it is skipped.
 */
final class PythonClient {
    private static final String PACKAGE = "openai==3.57.0";
    private static final Path HOME = Path.of("target", "python-client").toAbsolutePath();
    private static final Path PYTHON = HOME.resolve("bin/python");

    private PythonClient() {}

    /** What the script hears from a server. */
    static JsonNode ask(URI api) throws IOException, InterruptedException {
        Path script = HOME.resolve("openai_client.py");
        try (InputStream resource = PythonClient.class.getResourceAsStream("openai_client.py")) {
            Files.write(script, Objects.requireNonNull(resource).readAllBytes());
        }
        Result result = run(120, PYTHON.toString(), script.toString(), api.toString());
        if (result.status() != 0) {
            throw new AssertionError("the Python client failed: " + result.output());
        }
        return Json.parse(result.output());
    }

    /** Makes the environment, or skips the test. */
    static void require() throws IOException, InterruptedException {
        Files.createDirectories(HOME);
        if (Files.isExecutable(PYTHON)
                && run(60, PYTHON.toString(), "-c", "import openai").good()) {
            return;
        }
        Result venv = run(120, "python3", "-m", "venv", HOME.toString());
        Assumptions.assumeTrue(venv.good(), () -> "no python3 with venv: " + venv.output());
        Result pip =
                run(
                        240,
                        PYTHON.toString(),
                        "-m",
                        "pip",
                        "install",
                        "--quiet",
                        "--disable-pip-version-check",
                        PACKAGE);
        Assumptions.assumeTrue(pip.good(), () -> "cannot have " + PACKAGE + ": " + pip.output());
    }

    private record Result(int status, String output) {
        boolean good() {
            return status == 0;
        }
    }

    private static Result run(int limitSeconds, String... command)
            throws IOException, InterruptedException {
        Path output = Files.createTempFile(HOME, "output", ".txt");
        try {
            Process process =
                    new ProcessBuilder(List.of(command))
                            .redirectErrorStream(true)
                            .redirectOutput(output.toFile())
                            .start();
            if (!process.waitFor(limitSeconds, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
            return new Result(
                    process.exitValue(), Files.readString(output, StandardCharsets.UTF_8));
        } catch (IOException e) {
            return new Result(-1, e.toString());
        } finally {
            Files.delete(output);
        }
    }
}
