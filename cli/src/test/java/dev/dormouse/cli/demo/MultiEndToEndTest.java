package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.cli.fleet.Counters;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.fleet.EngineProcess;
import dev.dormouse.cli.fleet.TinyProcess;
import dev.dormouse.cli.serve.TinyModelFolder;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A decode engine with several connectors between a prefill engine that is read from and one that
 * pushes, behind one router, all of them processes, with a tiny model.
 */
class MultiEndToEndTest {
    private static final String PROMPT =
            "In the evening the lamps along the harbour were lit one by one, and then the boats came"
                    + " home with all that they had caught since the morning";
    private static final int TOKENS = 8;
    private static final String PULL = "{\"kv_connector\": \"NixlConnector\"}";
    private static final String PUSH = "{\"kv_connector\": \"NixlPushConnector\"}";

    @TempDir private static Path logs;
    private static final List<ChildProcess> PROCESSES = new ArrayList<>();
    private static final Map<Endpoint, Endpoint> ADMINS = new HashMap<>();
    private static Endpoint pulled;
    private static Endpoint pushing;
    private static Endpoint decode;
    private static Endpoint router;
    private static List<Integer> alone;

    @BeforeAll
    static void start() {
        Natives.nixlDirectory();
        TinyModelFolder.write(logs.resolve("tiny"));
        // One after the other: a start has a limit, and takes all cores.
        pulled = serve("pulled", "kv_producer", PULL);
        pushing = serve("pushing", "kv_producer", PUSH);
        decode = serve("decode", "kv_consumer", PULL + "," + PUSH, "--no-enable-prefix-caching");
        ChildProcess routerProcess =
                launch(
                        "router",
                        "route",
                        "--port=0",
                        "--prefill=" + pulled.base(),
                        "--prefill=" + pushing.base(),
                        "--decode=" + decode.base());
        router = new Endpoint("router", routerProcess.awaitReady());
        alone = decode.complete(PROMPT, TOKENS).tokens();
        assertThat(alone).hasSize(TOKENS);
    }

    private static Endpoint serve(String name, String role, String connectors, String... options) {
        List<String> arguments =
                new ArrayList<>(
                        List.of(
                                "serve",
                                "--port=0",
                                "--model=" + logs.resolve("tiny"),
                                "--side-channel-port=0",
                                "--shutdown-timeout=0",
                                "--kv-cache-memory=64MiB",
                                "--max-model-len=512",
                                "--enable-sleep-mode",
                                "--kv-transfer-config={\"kv_connector\": \"MultiConnector\","
                                        + " \"kv_role\": \""
                                        + role
                                        + "\", \"kv_connector_extra_config\": {\"connectors\": ["
                                        + connectors
                                        + "]}}"));
        arguments.addAll(List.of(options));
        EngineProcess engine = new EngineProcess(launch(name, arguments.toArray(String[]::new)));
        ADMINS.put(engine.endpoint(), engine.admin());
        return engine.endpoint();
    }

    /** Posts to the listener that puts an engine to sleep and wakes it. */
    private static void control(Endpoint engine, String call) {
        Objects.requireNonNull(ADMINS.get(engine)).post(call);
    }

    private static ChildProcess launch(String name, String... arguments) {
        ChildProcess process = TinyProcess.start(name, logs, List.of(arguments));
        PROCESSES.add(process);
        return process;
    }

    @AfterAll
    static void stop() {
        PROCESSES.reversed().forEach(ChildProcess::close);
    }

    @Test
    void promptsComeFromEitherEngineAndTheTokensStayTheSameOverSleepsOfAny() {
        Counters start = Counters.of(decode);
        Await.until(
                "the router has asked both, by turns",
                LiveFleet.LIMIT,
                () -> {
                    requireFromRouter();
                    return Counters.of(decode).minus(start).handshakes() == 2;
                },
                () -> router.get("/metrics"));
        assertThat(Counters.of(decode).minus(start).reads()).as("one is read from").isPositive();
        requireOverSleepOf(List.of(decode), 2);
        requireOverSleepOf(List.of(pulled), 1);
        requireOverSleepOf(List.of(pushing), 1);
        requireOverSleepOf(List.of(pulled, pushing, decode), 2);
    }

    /** Every wake costs one handshake of each connector that has to do with it. */
    private static void requireOverSleepOf(List<Endpoint> sleepers, int handshakes) {
        Counters before = Counters.of(decode);
        sleepers.forEach(engine -> control(engine, "/sleep?level=1"));
        if (!sleepers.contains(decode)) {
            requireFromRouter(); // the other one serves
        }
        sleepers.forEach(engine -> control(engine, "/wake_up"));
        for (Endpoint holder : List.of(pulled, pushing)) {
            requireTransfer(holder);
        }
        requireFromRouter();
        assertThat(Counters.of(decode).minus(before).handshakes()).isEqualTo(handshakes);
        for (Endpoint holder : List.of(pulled, pushing)) {
            Await.until(
                    "nothing is held",
                    LiveFleet.LIMIT,
                    () -> LiveFleet.metric(holder, "dormouse:num_requests_held_for_remote") == 0,
                    () -> holder.get("/metrics"));
        }
    }

    private static void requireFromRouter() {
        Counters before = Counters.of(decode);
        assertThat(router.complete(PROMPT, TOKENS).tokens()).isEqualTo(alone);
        requireNothingComputed(before);
    }

    private static void requireTransfer(Endpoint holder) {
        JsonNode handOver = holder.prefill(PROMPT);
        Counters before = Counters.of(decode);
        assertThat(decode.complete(PROMPT, TOKENS, handOver).tokens()).isEqualTo(alone);
        assertThat(requireNothingComputed(before).reads()).isEqualTo(holder == pulled ? 1 : 0);
    }

    private static Counters requireNothingComputed(Counters before) {
        Counters spent = Counters.of(decode).minus(before);
        assertThat(spent.computedPromptTokens()).as("the prompt came from a holder").isZero();
        assertThat(spent.failedTransfers()).isZero();
        return spent;
    }
}
