package dev.dormouse.benchmarks;

import static java.util.stream.Collectors.toSet;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Natives;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.ChainedOptionsBuilder;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.VerboseMode;

/** Each benchmark once, in miniature, in this process. */
final class EveryBenchmarkTest {
    private static final Path SOURCES = Path.of("src/main/java");
    private static final String NIXL = "dev.dormouse.nixl";

    private static final Map<String, String> MINIATURE =
            Map.of(
                    "rows", "7",
                    "inputs", "256",
                    "outputs", "33",
                    "threads", "2",
                    "context", "40",
                    "regions", "2",
                    "blocks", "4",
                    "tokens", "64",
                    "vocabulary", "1000",
                    "sequences", "2");

    @Test
    void everyBenchmarkOfJavaRuns() throws Exception {
        assertThat(run(new OptionsBuilder().exclude(NIXL)))
                .isNotEmpty()
                .isEqualTo(written().filter(name -> !name.startsWith(NIXL)).collect(toSet()));
    }

    @Test
    void everyBenchmarkOfNixlRuns() throws Exception {
        Natives.nixlDirectory();
        assertThat(run(new OptionsBuilder().include(NIXL)))
                .isNotEmpty()
                .isEqualTo(written().filter(name -> name.startsWith(NIXL)).collect(toSet()));
    }

    /** The classes that ran; a benchmark that throws fails the run. */
    private static Set<String> run(ChainedOptionsBuilder chosen) throws RunnerException {
        chosen.forks(0)
                .mode(Mode.SingleShotTime)
                .warmupIterations(0)
                .measurementIterations(1)
                .shouldFailOnError(true)
                .verbosity(VerboseMode.SILENT);
        MINIATURE.forEach(chosen::param);
        Collection<RunResult> results = new Runner(chosen.build()).run();
        return results.stream()
                .map(result -> result.getParams().getBenchmark())
                .map(method -> method.substring(0, method.lastIndexOf('.')))
                .collect(toSet());
    }

    /** The classes that are there. */
    private static Stream<String> written() throws IOException {
        try (Stream<Path> files = Files.walk(SOURCES)) {
            return files
                    .map(file -> SOURCES.relativize(file).toString())
                    .filter(name -> name.endsWith("Benchmark.java"))
                    .map(name -> name.replace(".java", "").replace('/', '.'))
                    .toList()
                    .stream();
        }
    }
}
