package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.fleet.Counters;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.serve.ServeCommand;
import dev.dormouse.cli.serve.ServingEngine;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;

/**
 * Engines of one and of three ranks over the real NIXL, each rank with an agent of its own: a
 * prompt of either prefill engine goes to either decode engine.
 */
final class RanksOverNixlTest {
    private static final int TOKENS = 6;
    private static final List<String> PROMPTS =
            List.of(
                    "The dormouse sleeps from October to April, and it forgets nothing, because",
                    "In the evening the lamps along the harbour were lit one by one, and then");

    /** Layers, KV heads, K and V, elements of a head, bytes of an element. */
    private static final long TOKEN_BYTES = 30L * 3 * 2 * 64 * 2;

    private static final int BLOCK_TOKENS = 16;

    private static final List<ServingEngine> ENGINES = new ArrayList<>();

    /** By role, and there by ranks. */
    private static Served[][] served = new Served[0][0];

    /** An engine's two listeners. */
    private record Served(Endpoint api, Endpoint admin) {}

    @BeforeAll
    static void start() {
        Natives.nixlDirectory();
        Natives.model();
        served =
                new Served[][] {
                    {start("prefill", 1), start("prefill", 3)},
                    {start("decode", 1), start("decode", 3)}
                };
    }

    private static Served start(String role, int ranks) {
        ServingEngine engine = serve(role, Integer.toString(ranks));
        ENGINES.add(engine);
        return new Served(
                endpoint(role + ranks, engine.port()), endpoint(role + ranks, engine.adminPort()));
    }

    private static Endpoint endpoint(String name, int port) {
        return new Endpoint(name, URI.create("http://127.0.0.1:" + port));
    }

    private static ServingEngine serve(String role, String ranks) {
        return CommandLine.populateCommand(
                        new ServeCommand(),
                        "--model=" + Natives.model(),
                        "--role=" + role,
                        "-tp",
                        ranks,
                        "--port=0",
                        "--admin-port=0",
                        "--side-channel-port=0",
                        "--kv-cache-memory=32MiB",
                        "--max-model-len=512",
                        "--no-enable-prefix-caching",
                        "--enable-sleep-mode")
                .start();
    }

    @AfterAll
    static void stop() {
        ENGINES.reversed().forEach(ServingEngine::close);
    }

    @ParameterizedTest
    @CsvSource({"1, 3", "3, 1", "3, 3"})
    void tokensAreTheControlsBeforeAndAfterEitherSleeps(int prefillRanks, int decodeRanks) {
        Served p = served[0][prefillRanks / 2];
        Served d = served[1][decodeRanks / 2];
        List<List<Integer>> controls =
                PROMPTS.stream().map(prompt -> d.api.complete(prompt, TOKENS).tokens()).toList();

        requireTransfers(p.api, d.api, controls, prefillRanks, decodeRanks);
        sleepAndWake(p, 1);
        requireTransfers(p.api, d.api, controls, prefillRanks, decodeRanks);
        sleepAndWake(d, 2);
        requireTransfers(p.api, d.api, controls, prefillRanks, decodeRanks);
    }

    /** The first transfer after a start or a wake, and another one. */
    private static void requireTransfers(
            Endpoint prefill,
            Endpoint decode,
            List<List<Integer>> controls,
            int prefillRanks,
            int decodeRanks) {
        Counters before = Counters.of(decode);
        long takenBefore = LiveFleet.firstTokens(decode);
        double bytesBefore = LiveFleet.metric(decode, "vllm:nixl_bytes_transferred_sum");
        long blocks = 0;
        for (int i = 0; i < PROMPTS.size(); i++) {
            JsonNode params = prefill.prefill(PROMPTS.get(i));
            assertThat(params.path("tp_size").asInt()).isEqualTo(prefillRanks);
            blocks += Math.ceilDiv(params.path("remote_num_tokens").asInt(), BLOCK_TOKENS);
            assertThat(decode.complete(PROMPTS.get(i), TOKENS, params).tokens())
                    .isEqualTo(controls.get(i));
        }
        Counters spent = Counters.of(decode).minus(before);
        assertThat(spent.handshakes()).as("one of each rank").isEqualTo(decodeRanks);
        assertThat(spent.reads())
                .isEqualTo((long) PROMPTS.size() * Math.max(prefillRanks, decodeRanks));
        assertThat(spent.computedPromptTokens()).as("recomputed").isZero();
        assertThat(LiveFleet.firstTokens(decode) - takenBefore).isEqualTo(PROMPTS.size());
        assertThat(spent.failedTransfers()).isZero();
        assertThat(blocks).isPositive();
        assertThat(LiveFleet.metric(decode, "vllm:nixl_bytes_transferred_sum") - bytesBefore)
                .isEqualTo((double) blocks * BLOCK_TOKENS * TOKEN_BYTES);
        Await.until(
                "every rank of the prefill engine has heard of the end",
                LiveFleet.LIMIT,
                () -> LiveFleet.metric(prefill, "dormouse:num_requests_held_for_remote") == 0,
                () -> prefill.get("/metrics"));
    }

    private static void sleepAndWake(Served engine, int level) {
        double epoch = LiveFleet.metric(engine.api, "dormouse:registration_epoch");
        engine.admin.post("/sleep?mode=wait&level=" + level);
        engine.admin.post("/wake_up");
        assertThat(LiveFleet.metric(engine.api, "dormouse:registration_epoch"))
                .isEqualTo(epoch + 1);
    }

    @Test
    void aSizeThatDoesNotFitTheModelIsRefusedWithItsNumbers() {
        for (String size : List.of("2", "0", "9")) {
            assertThatThrownBy(() -> serve("prefill", size))
                    .hasMessageContaining("size " + size + " does not fit 9 heads, 3 KV heads")
                    .hasMessageContaining("can have [1, 3]");
        }
    }
}
