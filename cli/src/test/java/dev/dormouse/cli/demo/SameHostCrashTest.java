package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.fleet.Counters;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.serve.TinyModelFolder;
import dev.dormouse.testkit.Await;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Engines as processes, of which one maps the other's pages: either is killed or stopped where that
 * matters. Every answer equals that of an engine alone or is an explicit error, and what is served
 * was read from the mapped pages, not computed. Each test leaves the fleet as it found it.
 */
class SameHostCrashTest {
    private static final int TOKENS = 12;
    private static final int CLIENTS = 6;
    private static final String IN_FLIGHT = "vllm:sleep_mode_operations_in_flight";

    /** What a client may be told while an engine is gone, by the router or by an engine. */
    private static final String EXPLICIT =
            "prefill_unreachable|prefill_broken|prefill_unavailable|decode_failed|kv_transfer_failed";

    /** Of several blocks each. */
    private static final List<String> PROMPTS =
            List.of(
                    "In the evening the lamps along the harbour were lit one by one, and then the boats came"
                            + " home with all that they had caught since the morning",
                    "Nobody in the village could say when the mill by the river had last been at work, or who"
                            + " had carried the stones up to it",
                    "The dormouse sleeps from October to April, and wakes with every thought that it had when"
                            + " the leaves began to fall");

    @TempDir private static Path logs;
    private static LiveFleet fleet;

    /** What an engine alone answers to each prompt. */
    private static Map<String, List<Integer>> alone;

    @BeforeAll
    static void start() {
        Path model = logs.resolve("tiny");
        TinyModelFolder.write(model);
        fleet = new LiveFleet(logs, "--model", model.toString(), "--kv-transport", "local");
        alone = new ConcurrentHashMap<>();
        for (String prompt : PROMPTS) {
            List<Integer> tokens = fleet.decode().complete(prompt, TOKENS).tokens();
            assertThat(tokens).hasSize(TOKENS);
            assertThat(alone).as("another prompt's KV would show").doesNotContainValue(tokens);
            alone.put(prompt, tokens);
        }
    }

    @AfterAll
    static void stop() {
        if (fleet != null) {
            fleet.close();
        }
    }

    /** Every prompt is answered as it should be. */
    private static void requireServing() {
        for (String prompt : PROMPTS) {
            assertThat(fleet.router().complete(prompt, TOKENS).tokens())
                    .isEqualTo(alone.get(prompt));
        }
    }

    /** Waits for the first right answer after a time without any. */
    private static void awaitServing() {
        Await.until(
                "the fleet serves again",
                LiveFleet.LIMIT,
                () -> fleet.router().status(PROMPTS.getFirst()) == 200,
                () -> fleet.router().get("/metrics"));
    }

    private static double localReads() {
        return LiveFleet.metric(fleet.decode(), "dormouse:kv_transfers_total", "local");
    }

    /** Every prompt goes the whole way over mapped pages, with so many new handshakes. */
    private static void requireServing(int handshakes) {
        Counters before = Counters.of(fleet.decode());
        double localBefore = localReads();
        requireServing();
        Counters spent = Counters.of(fleet.decode()).minus(before);
        assertThat(spent).isEqualTo(new Counters(PROMPTS.size(), handshakes, 0, 0));
        assertThat(localReads() - localBefore).isEqualTo(PROMPTS.size());
    }

    private static void sleep(Endpoint admin) {
        admin.post("/sleep?level=1&mode=wait");
    }

    private static void wake(Endpoint admin) {
        admin.post("/wake_up");
    }

    private static void restartDecode() {
        fleet.restartDecode();
        assertThat(Counters.of(fleet.decode()).handshakes()).isEqualTo(1);
    }

    @Test
    void aReaderKilledAwakeOrAsleepHoldsNothingBack() {
        requireServing();
        fleet.killDecode();
        sleep(fleet.prefillAdmin());
        wake(fleet.prefillAdmin());
        restartDecode();
        requireServing(0);

        sleep(fleet.decodeAdmin());
        fleet.killDecode();
        sleep(fleet.prefillAdmin());
        wake(fleet.prefillAdmin());
        restartDecode();
        requireServing(0);
    }

    @Test
    void aReaderThatIsStoppedKeepsItsOwnerAwakeWhichNamesItAndServesOn() {
        requireServing();
        long reader = fleet.decodePid();
        LiveFleet.signal("STOP", reader);
        try {
            assertThatThrownBy(() -> sleep(fleet.prefillAdmin()))
                    .isInstanceOf(FleetException.class)
                    .hasMessageContaining("with 503")
                    .hasMessageContaining("memory in use by")
                    .hasMessageContaining("(process " + reader + ")");
            assertThat(fleet.prefillAdmin().get("/is_sleeping")).contains("false");
            for (String prompt : PROMPTS) {
                assertThat(fleet.prefill().complete(prompt, TOKENS).tokens())
                        .isEqualTo(alone.get(prompt));
            }
        } finally {
            LiveFleet.signal("CONT", reader);
        }
        awaitServing();
        requireServing(0);
        sleep(fleet.prefillAdmin());
        wake(fleet.prefillAdmin());
        requireServing(1);
    }

    @Test
    void theDeathOfAReaderThatIsStoppedLetsTheSleepThatWaitsForItGoOn() throws Exception {
        requireServing();
        LiveFleet.signal("STOP", fleet.decodePid());
        CompletableFuture<Void> sleeping =
                CompletableFuture.runAsync(() -> sleep(fleet.prefillAdmin()));
        Await.until(
                "the sleep has begun",
                LiveFleet.LIMIT,
                () ->
                        fleet.prefill()
                                .get("/metrics")
                                .lines()
                                .anyMatch(
                                        line ->
                                                line.startsWith(IN_FLIGHT + "{")
                                                        && line.contains("\"sleep\"")
                                                        && line.endsWith(" 1.0")),
                () -> fleet.prefill().get("/metrics"));
        assertThat(sleeping).isNotDone();
        fleet.killDecode();
        sleeping.get(60, TimeUnit.SECONDS);
        assertThat(fleet.prefillAdmin().get("/is_sleeping")).contains("true");
        wake(fleet.prefillAdmin());
        restartDecode();
        requireServing(0);
    }

    @Test
    void anOwnerKilledUnderItsReadersIsAnErrorAndNeverAnotherAnswer() throws Exception {
        requireServing();
        long reader = fleet.decodePid();
        Counters before = Counters.of(fleet.decode());
        Answers answers = new Answers();
        AtomicBoolean over = new AtomicBoolean();
        List<CompletableFuture<Void>> clients = new ArrayList<>();
        for (int i = 0; i < CLIENTS; i++) {
            int first = i;
            clients.add(CompletableFuture.runAsync(() -> ask(first, answers, over)));
        }
        try {
            for (int round = 0; round < 3; round++) {
                answers.awaitMore(2 * CLIENTS);
                fleet.killPrefill();
                fleet.restartPrefill();
            }
            answers.awaitMore(2 * CLIENTS);
        } finally {
            over.set(true);
        }
        for (CompletableFuture<Void> client : clients) {
            client.get(60, TimeUnit.SECONDS);
        }
        assertThat(answers.faults()).isEmpty();
        assertThat(fleet.decodePid()).isEqualTo(reader);
        Counters spent = Counters.of(fleet.decode()).minus(before);
        assertThat(spent.computedPromptTokens()).as("every right answer was read").isZero();
        assertThat(spent.handshakes()).isEqualTo(3);
        requireServing(0);
    }

    /** What clients were answered. */
    private static final class Answers {
        private final List<String> faults = new ArrayList<>();
        private int right;

        synchronized void right() {
            right++;
        }

        synchronized void fault(String what) {
            faults.add(what);
        }

        synchronized List<String> faults() {
            return List.copyOf(faults);
        }

        private synchronized int count() {
            return right;
        }

        void awaitMore(int more) {
            int enough = count() + more;
            Await.until("right answers", LiveFleet.LIMIT, () -> count() >= enough, this::faults);
        }
    }

    private static void ask(int first, Answers answers, AtomicBoolean over) {
        for (int i = first; !over.get(); i++) {
            String prompt = PROMPTS.get(i % PROMPTS.size());
            try {
                List<Integer> tokens = fleet.router().complete(prompt, TOKENS).tokens();
                if (tokens.equals(alone.get(prompt))) {
                    answers.right();
                } else {
                    answers.fault(prompt + " is answered " + tokens);
                }
            } catch (FleetException e) {
                if (!String.valueOf(e.getMessage()).matches("(?s).*\"(" + EXPLICIT + ")\".*")) {
                    answers.fault(e.toString());
                }
            }
        }
    }

    @Test
    void whatAKilledOwnerHeldIsAnErrorAtItsReaderWhetherItWasAsleepOrNot() {
        for (boolean asleep : List.of(false, true)) {
            requireServing();
            String prompt = PROMPTS.getFirst();
            JsonNode handedOver = fleet.prefill().prefill(prompt);
            if (asleep) { // takes the hand-over back
                fleet.prefillAdmin().post("/sleep?level=1&mode=abort");
            }
            fleet.killPrefill();
            assertThatThrownBy(() -> fleet.decode().complete(prompt, TOKENS, handedOver))
                    .isInstanceOf(FleetException.class)
                    .hasMessageContaining("kv_transfer_failed");
            assertThat(fleet.decode().complete(prompt, TOKENS).tokens())
                    .isEqualTo(alone.get(prompt));
            fleet.restartPrefill();
            requireServing(0);
        }
    }

    @Test
    void anOwnerThatIsStoppedIsAnErrorInTimeWhetherItIsMappedOrNot() {
        for (boolean mapped : List.of(true, false)) {
            requireServing();
            if (!mapped) {
                sleep(fleet.prefillAdmin());
                wake(fleet.prefillAdmin());
            }
            String prompt = PROMPTS.getFirst();
            JsonNode handedOver = fleet.prefill().prefill(prompt);
            LiveFleet.signal("STOP", fleet.prefillPid());
            try {
                assertThatThrownBy(() -> fleet.decode().complete(prompt, TOKENS, handedOver))
                        .isInstanceOf(FleetException.class)
                        .hasMessageContaining("kv_transfer_failed");
                assertThat(fleet.decode().complete(prompt, TOKENS).tokens())
                        .isEqualTo(alone.get(prompt));
            } finally {
                LiveFleet.signal("CONT", fleet.prefillPid());
            }
            awaitServing();
            requireServing(0);
        }
    }
}
