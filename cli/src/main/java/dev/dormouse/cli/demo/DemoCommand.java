package dev.dormouse.cli.demo;

import dev.dormouse.cli.Termination;
import dev.dormouse.cli.fleet.FleetOptions;
import dev.dormouse.cli.fleet.Progress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code dormouse demo}. */
@Command(
        name = "demo",
        mixinStandardHelpOptions = true,
        description = {
            "Shows that sleep costs no token.",
            "",
            "Starts a prefill engine, a decode engine and a router as processes of their own, puts the engines to sleep and"
                    + " wakes them in every way, and compares each output token by token with an engine that never slept."
        },
        exitCodeListHeading = "%nExit status:%n",
        exitCodeList = {
            "0:Every output equal, nothing failed, one handshake per rank and wake, all memory back; with --without-revocation: the fault shows.",
            "1:Something is wrong; the report says what."
        })
public final class DemoCommand implements Callable<Integer> {
    private static final int QUICK_PROMPTS = 2;
    private static final int QUICK_TOKENS = 8;

    @Spec private CommandSpec spec;

    @Option(
            names = "--model",
            paramLabel = "PATH",
            description = "GGUF file, or folder of Hugging Face's (default: as `dormouse serve`).")
    private @Nullable Path model;

    @Option(
            names = "--prompts",
            paramLabel = "N",
            description = "Prompts per check (default: 8; quick: 2).")
    private @Nullable Integer prompts;

    @Option(
            names = "--tokens",
            paramLabel = "N",
            description = "Tokens per output (default: 16; quick: 8).")
    private @Nullable Integer tokens;

    @Option(
            names = "--cycles",
            paramLabel = "N",
            description = "Cycles of the repeated cases (default: 3; quick: 1).")
    private @Nullable Integer cycles;

    @Option(
            names = "--kv-cache-mib",
            paramLabel = "MIB",
            defaultValue = "256",
            description = "KV cache of each engine (default: ${DEFAULT-VALUE}).")
    private int kvCacheMiB;

    @Option(
            names = "--prefill-tp",
            paramLabel = "N",
            defaultValue = "1",
            description =
                    "Tensor parallel ranks of the prefill engine (default: ${DEFAULT-VALUE}).")
    private int prefillRanks;

    @Option(
            names = "--decode-tp",
            paramLabel = "N",
            defaultValue = "1",
            description = "Tensor parallel ranks of the decode engine (default: ${DEFAULT-VALUE}).")
    private int decodeRanks;

    @Option(
            names = "--transport",
            paramLabel = "TRANSPORT",
            defaultValue = "nixl",
            description =
                    "How KV goes from prefill to decode engine: ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
    private FleetOptions.Transport transport = FleetOptions.Transport.NIXL;

    @Option(
            names = "--without-revocation",
            description =
                    "Show the fault instead: the prefill engine sleeps without taking back what the decode engine maps of it. Needs --transport local.")
    private boolean withoutRevocation;

    @Option(
            names = "--quick",
            description = "The same cases, small: under 45 seconds on two recent cores.")
    private boolean quick;

    @Option(names = "--json", paramLabel = "FILE", description = "Write the report as JSON, too.")
    private @Nullable Path json;

    @Option(
            names = "--keep-logs",
            paramLabel = "DIR",
            description = "Keep the processes' logs here.")
    private @Nullable Path logs;

    /** Made by picocli. */
    public DemoCommand() {}

    @Override
    public Integer call() throws IOException {
        DemoOptions options = options();
        Path directory =
                options.logs() != null
                        ? Files.createDirectories(options.logs())
                        : temporaryDirectory();
        Progress progress = new Progress(System.err);
        Report report = new Demo(options, progress, directory).run();
        progress.say("done");
        System.out.println(report.toTable());
        if (options.json() != null) {
            Files.writeString(options.json(), report.toJson() + System.lineSeparator());
        }
        return report.ok() ? 0 : 1;
    }

    /** A folder that goes when this process ends, interrupted or not. */
    private static Path temporaryDirectory() throws IOException {
        Path directory = Files.createTempDirectory("dormouse-demo");
        var _ = Termination.closing(() -> delete(directory));
        return directory;
    }

    private DemoOptions options() {
        if (withoutRevocation && transport != FleetOptions.Transport.LOCAL) {
            throw new ParameterException(
                    spec.commandLine(),
                    "--without-revocation needs --transport local: over NIXL nobody maps what could be taken back");
        }
        return new DemoOptions(
                model,
                within("--prompts", prompts, quick ? QUICK_PROMPTS : 8, 2, DemoPrompts.available()),
                within("--tokens", tokens, quick ? QUICK_TOKENS : 16, 1, 256),
                within("--cycles", cycles, quick ? 1 : 3, 1, 1000),
                within("--kv-cache-mib", kvCacheMiB, kvCacheMiB, 64, 1 << 20),
                within("--prefill-tp", prefillRanks, prefillRanks, 1, 1024),
                within("--decode-tp", decodeRanks, decodeRanks, 1, 1024),
                transport,
                !withoutRevocation,
                quick ? 2 : 5,
                json,
                logs);
    }

    private int within(String option, @Nullable Integer given, int standard, int least, int most) {
        int value = given == null ? standard : given;
        if (value < least || value > most) {
            throw new ParameterException(
                    spec.commandLine(),
                    option + " is " + value + ", but must be between " + least + " and " + most);
        }
        return value;
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            List<Path> deepestFirst = files.sorted(Comparator.reverseOrder()).toList();
            for (Path file : deepestFirst) {
                Files.deleteIfExists(file);
            }
        }
    }
}
