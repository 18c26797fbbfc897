package dev.dormouse.cli.demo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cli.fleet.Counters;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.testkit.Await;
import java.util.List;

/** Asks a fleet whose prefill engine pushes, and looks at which way the prompt took. */
final class PushedPrompts {
    static final String CONFIG =
            "{\"kv_connector\": \"NixlPushConnector\", \"kv_role\": \"kv_both\"}";
    static final String PROMPT =
            "In the evening the lamps along the harbour were lit one by one, and then the boats came"
                    + " home with all that they had caught since the morning";
    static final int TOKENS = 12;

    private final LiveFleet fleet;
    private final String transport;
    private final List<Integer> alone;

    /**
     * Lets the decode engine answer by itself.
     *
     * @param transport the way that pushes must take
     */
    PushedPrompts(LiveFleet fleet, String transport) {
        this.fleet = fleet;
        this.transport = transport;
        alone = fleet.decode().complete(PROMPT, TOKENS).tokens();
        assertThat(alone).hasSize(TOKENS);
        assertThat(fleet.decode().complete(PROMPT.substring(9), TOKENS).tokens())
                .as("another prompt's KV would show")
                .isNotEqualTo(alone);
    }

    /** What an engine alone answers. */
    List<Integer> alone() {
        return alone;
    }

    /** One prompt goes the whole way: computed by one engine, and written to the other. */
    void requirePush() {
        Counters before = Counters.of(fleet.decode());
        Counters ofPrefill = Counters.of(fleet.prefill());
        long taken = LiveFleet.firstTokens(fleet.decode());
        double writes = transfers(fleet.prefill());
        assertThat(fleet.router().complete(PROMPT, TOKENS).tokens()).isEqualTo(alone);
        Counters spent = Counters.of(fleet.decode()).minus(before);
        assertThat(spent.computedPromptTokens()).as("the prompt came from the holder").isZero();
        assertThat(LiveFleet.firstTokens(fleet.decode()) - taken).isEqualTo(1);
        assertThat(spent.reads()).as("it was not read").isZero();
        assertThat(spent.failedTransfers()).isZero();
        Await.until(
                "the write is counted and nothing is held",
                LiveFleet.LIMIT,
                () ->
                        Counters.of(fleet.prefill()).minus(ofPrefill).reads() == 1
                                && LiveFleet.metric(
                                                fleet.prefill(),
                                                "dormouse:num_requests_held_for_remote")
                                        == 0,
                () -> fleet.prefill().get("/metrics"));
        assertThat(transfers(fleet.prefill()) - writes).as("over " + transport).isEqualTo(1);
    }

    private double transfers(Endpoint engine) {
        return LiveFleet.metric(engine, "dormouse:kv_transfers_total", transport);
    }

    /** Sleeps of each engine and of both change nothing but the registrations. */
    void requirePushesOverSleeps() {
        requirePush();
        for (List<Endpoint> sleepers :
                List.of(
                        List.of(fleet.decodeAdmin()),
                        List.of(fleet.prefillAdmin()),
                        List.of(fleet.prefillAdmin(), fleet.decodeAdmin()))) {
            sleepers.forEach(engine -> engine.post("/sleep?level=1"));
            sleepers.forEach(engine -> engine.post("/wake_up"));
            requirePush();
            requirePush();
        }
    }
}
