package dev.dormouse.cli.bench.serve;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.cli.fleet.Progress;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code dormouse bench serve}: what clients of a server get. */
@Command(
        name = "serve",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Throughput and latencies of a server of OpenAI's API under load, in the terms of `vllm bench serve`.",
            "",
            "As many clients as --max-concurrency says stream completions of random prompts, each as soon as its last one has ended."
                    + " Prompts are exactly so many token ids if the server has /tokenize, else text of about that length; the"
                    + " server's usage counts. Before that, some requests that do not count warm the server up.",
            "",
            "Without --base-url it starts its own engines: one with a thread per processor, or a prefill and a decode engine that share"
                    + " them equally, behind a router."
        },
        exitCodeListHeading = "%nExit status:%n",
        exitCodeList = {"0:All requests were answered.", "1:Some failed; the report says why."})
public final class ServeBench implements Callable<Integer> {
    private static final int WARM_UP_REQUESTS = 16;
    private static final int WARM_UP_CONCURRENCY = 8;

    /** What is started without {@code --base-url}. */
    enum Kind {
        /** One engine. */
        single,
        /** A prefill engine, a decode engine, a router. */
        pd
    }

    @Spec private CommandSpec spec;

    @Option(
            names = "--base-url",
            paramLabel = "URL",
            description = "The server, such as http://127.0.0.1:8000.")
    private @Nullable URI baseUrl;

    @Option(
            names = "--fleet",
            paramLabel = "FLEET",
            defaultValue = "single",
            description =
                    "What to start without it: ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
    private Kind kind = Kind.single;

    @Option(
            names = "--model",
            paramLabel = "PATH",
            description =
                    "What it serves: GGUF file, or folder of Hugging Face's (default: as `dormouse serve`).")
    private @Nullable Path model;

    @Option(
            names = "--num-prompts",
            paramLabel = "N",
            defaultValue = "64",
            description = "Requests, for each concurrency (default: ${DEFAULT-VALUE}).")
    private int numPrompts;

    @Option(
            names = "--max-concurrency",
            paramLabel = "N",
            split = ",",
            defaultValue = "1,8,64",
            description = "Requests under way at once (default: ${DEFAULT-VALUE}).")
    private List<Integer> concurrencies = List.of();

    @Option(
            names = "--input-len",
            paramLabel = "TOKENS",
            defaultValue = "128",
            description = "Tokens of each prompt (default: ${DEFAULT-VALUE}).")
    private int inputTokens;

    @Option(
            names = "--output-len",
            paramLabel = "TOKENS",
            defaultValue = "64",
            description = "Tokens of each answer (default: ${DEFAULT-VALUE}).")
    private int outputTokens;

    @Option(
            names = "--seed",
            paramLabel = "N",
            defaultValue = "1",
            description = "Of the prompts (default: ${DEFAULT-VALUE}).")
    private long seed;

    @Option(names = "--json", paramLabel = "FILE", description = "Write the figures as JSON, too.")
    private @Nullable Path json;

    private final Progress progress = new Progress(System.err);
    private final BenchFleet.Starter starter;

    /** Made by picocli. */
    public ServeBench() {
        this(ChildProcess::start);
    }

    /** With another way to start processes. */
    ServeBench(BenchFleet.Starter starter) {
        this.starter = starter;
    }

    @Override
    public Integer call() throws IOException {
        requireOptions();
        ObjectNode report;
        if (baseUrl != null) {
            report = measure(baseUrl, baseUrl).put("base_url", baseUrl.toString());
        } else {
            Path logs = Files.createTempDirectory("dormouse-bench");
            progress.say("starting; logs in " + logs);
            try (BenchFleet fleet = start(new BenchFleet.Setting(starter, model, logs))) {
                report = measure(fleet.base(), fleet.prefill().endpoint().base());
                report.put("fleet", kind.name());
            }
        }
        if (json != null) {
            Json.write(json, report);
        }
        return report.path("results").findValuesAsText("failed").stream().allMatch("0"::equals)
                ? 0
                : 1;
    }

    private BenchFleet start(BenchFleet.Setting setting) {
        return switch (kind) {
            case single -> BenchFleet.single(setting);
            case pd -> {
                List<String> half =
                        List.of("--threads", Integer.toString(BenchFleet.threadsOfHalf()));
                yield BenchFleet.pair(setting, half, half);
            }
        };
    }

    /** Measures one server with prompts that another one may tokenize. */
    private ObjectNode measure(URI server, URI tokenizer) {
        try (LoadClient client = LoadClient.of(server);
                LoadClient tokenizing = LoadClient.of(tokenizer)) {
            Prompts prompts = Prompts.of(tokenizing, new SplittableRandom(seed));
            ObjectNode report = settings(client, prompts);
            progress.say("warming up");
            var _ =
                    client.run(
                            prompts(prompts, WARM_UP_REQUESTS), outputTokens, WARM_UP_CONCURRENCY);
            List<ServeResult> results = new ArrayList<>();
            for (int concurrency : concurrencies) {
                List<JsonNode> fresh = prompts(prompts, numPrompts);
                progress.say(numPrompts + " requests, " + concurrency + " at a time");
                results.add(
                        ServeResult.of(concurrency, client.run(fresh, outputTokens, concurrency)));
            }
            spec.commandLine().getOut().println(ServeTable.of(results));
            spec.commandLine().getOut().flush();
            report.set(
                    "results",
                    Json.MAPPER.valueToTree(results.stream().map(ServeResult::toJson).toList()));
            return report;
        }
    }

    private List<JsonNode> prompts(Prompts prompts, int count) {
        return prompts.next(count, inputTokens);
    }

    private ObjectNode settings(LoadClient client, Prompts prompts) {
        ObjectNode report = Json.MAPPER.createObjectNode();
        report.put("model_id", client.model());
        report.put("num_prompts", numPrompts);
        report.put("input_len", inputTokens).put("input_len_exact", prompts.exact());
        report.put("output_len", outputTokens).put("ignore_eos", client.ignoresEnd());
        report.put("seed", seed);
        progress.say(
                String.format(
                        Locale.ROOT,
                        "%s: prompts of %s%d tokens, answers of %s%d",
                        client.model(),
                        prompts.exact() ? "" : "about ",
                        inputTokens,
                        client.ignoresEnd() ? "" : "at most ",
                        outputTokens));
        return report;
    }

    private void requireOptions() {
        require(
                baseUrl == null || model == null,
                "--model is of engines that are started, and --base-url has one");
        require(numPrompts > 0, "--num-prompts is " + numPrompts + ", but must be at least 1");
        require(inputTokens > 0, "--input-len is " + inputTokens + ", but must be at least 1");
        require(outputTokens > 0, "--output-len is " + outputTokens + ", but must be at least 1");
        concurrencies.forEach(
                each ->
                        require(
                                each > 0,
                                "--max-concurrency has " + each + ", but must be at least 1"));
    }

    private void require(boolean condition, String message) {
        if (!condition) {
            throw new ParameterException(spec.commandLine(), message);
        }
    }
}
