package dev.dormouse.cli.bench.serve;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.cli.fleet.TinyProcess;
import dev.dormouse.cli.serve.TinyModelFolder;
import dev.dormouse.testkit.Natives;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

final class ServeBenchTest {
    @TempDir private Path folder;

    private final StringWriter out = new StringWriter();

    private int run(String... arguments) {
        return new CommandLine(new ServeBench(TinyProcess::start))
                .setOut(new PrintWriter(out))
                .setErr(new PrintWriter(out))
                .setOverwrittenOptionsAllowed(true)
                .execute(arguments);
    }

    private int run(FakeServer server, String... more) {
        List<String> arguments = new ArrayList<>(List.of("--base-url", server.base().toString()));
        arguments.addAll(List.of("--num-prompts", "5", "--input-len", "12", "--output-len", "3"));
        arguments.addAll(List.of("--json", folder.resolve("report.json").toString()));
        arguments.addAll(List.of(more));
        return run(arguments.toArray(String[]::new));
    }

    private JsonNode report() throws IOException {
        return Json.parse(Files.readString(folder.resolve("report.json")));
    }

    @Test
    void eachConcurrencyGetsFreshPromptsOfExactlyTheWantedTokens() throws IOException {
        try (FakeServer server = new FakeServer(true, FakeServer::whole)) {
            assertThat(run(server, "--max-concurrency", "1,4")).as("%s", out).isZero();
            JsonNode report = report();
            assertThat(report.path("model_id").asText()).isEqualTo("fake");
            assertThat(report.path("input_len_exact").asBoolean()).isTrue();
            assertThat(report.path("ignore_eos").asBoolean()).isTrue();
            assertThat(report.path("results").findValuesAsText("max_concurrency"))
                    .containsExactly("1", "4");
            for (JsonNode result : report.path("results")) {
                assertThat(result.path("completed").asInt()).isEqualTo(5);
                assertThat(result.path("total_input_tokens").asInt()).isEqualTo(5 * 12);
                assertThat(result.path("total_output_tokens").asInt()).isEqualTo(5 * 3);
            }
            List<JsonNode> measured =
                    server.completions().stream()
                            .filter(body -> body.path("prompt").isArray())
                            .toList();
            assertThat(measured).hasSize(16 + 2 * 5);
            assertThat(measured.stream().map(body -> body.path("prompt"))).doesNotHaveDuplicates();
            assertThat(measured)
                    .allSatisfy(
                            body -> {
                                assertThat(body.path("stream").asBoolean()).isTrue();
                                assertThat(body.at("/stream_options/include_usage").asBoolean())
                                        .isTrue();
                                assertThat(body.path("model").asText()).isEqualTo("fake");
                            });
        }
    }

    @Test
    void asManyRequestsAreUnderWayAsClientsThereAre() throws IOException {
        CountDownLatch three = new CountDownLatch(3);
        try (FakeServer server =
                        new FakeServer(
                                true,
                                body -> {
                                    if (body.path("max_tokens").asInt() == 9) {
                                        three.countDown();
                                        awaitAll(three);
                                    }
                                    return FakeServer.whole(body);
                                });
                LoadClient client = LoadClient.of(server.base())) {
            Prompts prompts = Prompts.of(client, new SplittableRandom(1));
            LoadClient.Load load = client.run(prompts.next(7, 4), 9, 3);
            assertThat(load.answers()).hasSize(7).allMatch(Answer.Served.class::isInstance);
            assertThat(server.mostUnderWay()).isEqualTo(3);
        }
    }

    private static void awaitAll(CountDownLatch latch) {
        try {
            assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void equalSeedsGiveEqualPromptsAndOthersDoNot() throws IOException {
        try (FakeServer server = new FakeServer(true, FakeServer::whole);
                LoadClient client = LoadClient.of(server.base())) {
            List<List<JsonNode>> drawn =
                    Stream.of(1, 1, 2)
                            .map(seed -> Prompts.of(client, new SplittableRandom(seed)).next(3, 9))
                            .toList();
            assertThat(drawn.get(1)).isEqualTo(drawn.get(0));
            assertThat(drawn.get(2)).doesNotContainAnyElementsOf(drawn.get(0));
        }
    }

    @Test
    void aServerThatDoesNotTokenizeGetsTextOfAboutThatLength() throws IOException {
        try (FakeServer server = new FakeServer(false, FakeServer::whole)) {
            assertThat(run(server, "--input-len", "300", "--max-concurrency", "2")).isZero();
            assertThat(report().path("input_len_exact").asBoolean()).isFalse();
            int tokens = report().at("/results/0/total_input_tokens").asInt();
            assertThat(tokens).isBetween(5 * 200, 5 * 400);
        }
    }

    @Test
    void aServerThatRefusesIgnoreEosIsAskedWithout() throws IOException {
        try (FakeServer server =
                new FakeServer(
                        true,
                        body ->
                                body.has("ignore_eos")
                                        ? new FakeServer.Reply(400, List.of("unknown field"))
                                        : FakeServer.whole(body))) {
            assertThat(run(server, "--max-concurrency", "2")).isZero();
            assertThat(report().path("ignore_eos").asBoolean()).isFalse();
        }
    }

    @Test
    void whatFailsIsCountedAndSaid() throws IOException {
        try (FakeServer server =
                new FakeServer(
                        true,
                        body ->
                                body.path("prompt").isArray()
                                        ? new FakeServer.Reply(503, List.of("asl", "eep"))
                                        : FakeServer.whole(body))) {
            assertThat(run(server, "--max-concurrency", "2")).isEqualTo(1);
            assertThat(report().at("/results/0/failed").asInt()).isEqualTo(5);
            assertThat(report().at("/results/0/completed").asInt()).isZero();
            assertThat(out.toString()).contains("FAILED 5 of concurrency 2: 503: asleep");
        }
    }

    @Test
    void aServerWithoutUsageIsNoServerToMeasure() throws IOException {
        try (FakeServer server =
                new FakeServer(
                        true,
                        _ ->
                                new FakeServer.Reply(
                                        200,
                                        List.of(
                                                "data: {\"choices\":[{\"text\":\"a\"}]}\n\n",
                                                "data: [DONE]\n\n")))) {
            assertThatThrownBy(() -> LoadClient.of(server.base()))
                    .isInstanceOf(FleetException.class)
                    .hasMessageContaining("did not tell the usage");
        }
    }

    @Test
    void badOptionsStartNothing() {
        assertThat(run("--num-prompts", "0")).isEqualTo(2);
        assertThat(run("--max-concurrency", "1,0")).isEqualTo(2);
        assertThat(run("--base-url", "http://127.0.0.1:1", "--model", "x")).isEqualTo(2);
    }

    @Test
    void anEngineOfItsOwnIsMeasured() throws IOException {
        Natives.nixlDirectory();
        Path model = folder.resolve("tiny");
        TinyModelFolder.write(model);
        Path json = folder.resolve("report.json");
        int status =
                run(
                        "--fleet",
                        "single",
                        "--model",
                        model.toString(),
                        "--num-prompts",
                        "6",
                        "--max-concurrency",
                        "1,3",
                        "--input-len",
                        "40",
                        "--output-len",
                        "5",
                        "--json",
                        json.toString());
        assertThat(status).as("%s", out).isZero();
        for (JsonNode result : report().path("results")) {
            assertThat(result.path("completed").asInt()).isEqualTo(6);
            assertThat(result.path("total_input_tokens").asInt()).isEqualTo(6 * 40);
            assertThat(result.path("total_output_tokens").asInt()).isEqualTo(6 * 5);
            assertThat(result.path("p50_ttft_ms").asDouble())
                    .isPositive()
                    .isLessThanOrEqualTo(result.path("p50_e2el_ms").asDouble());
        }
    }
}
