package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.Prompts.prompt;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.connector.CompatibilityFactors;
import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.connector.PullConnector;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.WakeTag;
import dev.dormouse.testkit.Await;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** A prefill and a decode engine with the real connector, its side channel, and their sleep. */
final class PrefillDecodeTest {
    private static final Duration LONG_LEASE = Duration.ofMinutes(1);

    /** Two engines on their own threads. */
    private static final class Pair implements AutoCloseable {
        private final DirectTransport.Network network = new DirectTransport.Network();
        private final Duration lease;
        private final EngineHarness prefill;
        private final EngineHarness decode;
        private int requests;

        Pair(Duration lease) {
            this.lease = lease;
            prefill = start("prefill");
            decode = start("decode");
        }

        private EngineHarness start(String name) {
            ConnectorConfig config =
                    ConnectorConfig.builder(
                                    CompatibilityFactors.of(
                                            "hash", "torch.float16", 1, 4, HashModel.LAYERS),
                                    HashModel.BLOCK_TOKENS)
                            .engineId(name)
                            .bindHost("127.0.0.1")
                            .advertisedHost("127.0.0.1")
                            .sideChannelPort(0)
                            .leaseDuration(lease)
                            .build();
            ConnectorHalves halves =
                    new ConnectorHalves(
                            PullConnector.scheduler(config),
                            List.of(PullConnector.worker(config, 0, network.open("a-" + name))));
            EngineHarness harness =
                    new EngineHarness(EngineHarness.config(64, 8, 64, false), 1, halves);
            harness.engine.start();
            return harness;
        }

        KvTransferParams prefilled(List<Integer> prompt) {
            RecordingListener listener =
                    prefill.submit("r" + requests++, prompt, 1, FakeConnector.remoteDecode());
            Await.until("the prefill ends", listener::isOver);
            return requireNonNull(listener.finished().kvTransferParams());
        }

        RecordingListener decoded(List<Integer> prompt, KvTransferParams params) {
            RecordingListener listener = decode.submit("r" + requests++, prompt, 8, params);
            Await.until("the decode ends", listener::isOver);
            return listener;
        }

        /** Asks through both engines; expects the oracle, and nothing computed or chosen twice. */
        void expectOracle(int number) {
            List<Integer> prompt = prompt(number, 5 + number);
            EngineStatistics before = decode.engine.statistics();
            RecordingListener listener = decoded(prompt, prefilled(prompt));
            assertThat(listener.tokens()).isEqualTo(HashModel.oracle(prompt, 8));
            Await.until("all blocks are free", this::isIdle);
            EngineStatistics after = decode.engine.statistics();
            assertThat(after.computedPromptTokens()).isEqualTo(before.computedPromptTokens());
            assertThat(after.remoteFirstTokens()).isEqualTo(before.remoteFirstTokens() + 1);
        }

        boolean isIdle() {
            return prefill.freeBlocks() == prefill.kvBlocks()
                    && decode.freeBlocks() == decode.kvBlocks();
        }

        long handshakes() {
            return decode.engine.statistics().transfers().handshakes();
        }

        @Override
        public void close() {
            decode.close();
            prefill.close();
        }
    }

    private static void cycle(EngineHarness... engines) {
        for (EngineHarness harness : engines) {
            assertThat(harness.engine.sleep(1, PauseMode.WAIT).join().changed()).isTrue();
        }
        for (EngineHarness harness : engines) {
            assertThat(harness.engine.wake(null).join().state().phase()).isEqualTo(Phase.AWAKE);
        }
    }

    @Test
    void outputsAreTheSameWhoeverSlept() {
        try (Pair pair = new Pair(LONG_LEASE)) {
            for (int number = 0; number < 6; number++) {
                pair.expectOracle(number);
            }
            assertThat(pair.handshakes()).isEqualTo(1);
            for (int cycle = 1; cycle <= 3; cycle++) {
                cycle(pair.prefill);
                pair.expectOracle(cycle);
                assertThat(pair.handshakes()).as("one more per wake of P").isEqualTo(1 + cycle);
            }
            for (int cycle = 1; cycle <= 3; cycle++) {
                cycle(pair.decode);
                pair.expectOracle(cycle);
                assertThat(pair.handshakes()).as("D drops its peers to sleep").isEqualTo(4 + cycle);
            }
            for (int cycle = 1; cycle <= 3; cycle++) {
                cycle(pair.prefill, pair.decode);
                pair.expectOracle(cycle);
                assertThat(pair.handshakes()).isEqualTo(7 + cycle);
            }
            EngineStatistics statistics = pair.decode.engine.statistics();
            assertThat(statistics.transfers().failedTransfers()).isZero();
            assertThat(statistics.transfers().failedHandshakes()).isZero();
        }
    }

    @Test
    void wakingTheWeightsAloneCausesNoHandshake() {
        try (Pair pair = new Pair(LONG_LEASE)) {
            pair.expectOracle(1);
            long before = pair.prefill.engine.statistics().registrationEpoch();
            pair.prefill.engine.sleep(2, PauseMode.WAIT).join();
            pair.prefill.engine.wake(Set.of(WakeTag.KV_CACHE)).join();
            long epoch = pair.prefill.engine.statistics().registrationEpoch();
            pair.prefill.engine.wake(Set.of(WakeTag.WEIGHTS)).join();
            assertThat(pair.prefill.engine.statistics().registrationEpoch())
                    .isEqualTo(epoch)
                    .isEqualTo(before + 1);
            pair.expectOracle(2);

            assertThat(pair.handshakes()).isEqualTo(2);
        }
    }

    @Test
    void aSleepWaitsForTheReaderOfAHandedOverPrompt() {
        try (Pair pair = new Pair(LONG_LEASE)) {
            List<Integer> prompt = prompt(3, 9);
            KvTransferParams params = pair.prefilled(prompt);
            CompletableFuture<TransitionReport> sleep =
                    pair.prefill.engine.sleep(1, PauseMode.WAIT);
            Await.until(
                    "the sleep began", () -> pair.prefill.engine.state().phase() == Phase.PAUSING);
            RecordingListener listener = pair.decoded(prompt, params);

            assertThat(listener.tokens()).isEqualTo(HashModel.oracle(prompt, 8));
            assertThat(pair.decode.engine.statistics().remotePromptTokens()).isPositive();
            assertThat(sleep.join().changed()).isTrue();
        }
    }

    @Test
    void aSleepThatAbortsTakesUnreadPromptsBackWithoutWaitingForTheirLease() {
        try (Pair pair = new Pair(LONG_LEASE)) {
            pair.expectOracle(1);
            List<Integer> prompt = prompt(2, 9);
            KvTransferParams unread = pair.prefilled(prompt);
            assertThat(pair.prefill.engine.sleep(1, PauseMode.ABORT).join().changed()).isTrue();
            EngineStatistics statistics = pair.prefill.engine.statistics();
            assertThat(statistics.transfers().revokedRequests()).isEqualTo(1);
            assertThat(statistics.transfers().expiredRequests()).isZero();
            pair.prefill.engine.wake(null).join();
            assertThat(pair.decoded(prompt, unread).tokens())
                    .isEqualTo(HashModel.oracle(prompt, 8));
            assertThat(pair.decode.engine.statistics().computedPromptTokens()).isEqualTo(9);
            pair.expectOracle(3);
            assertThat(pair.handshakes()).isEqualTo(2);
        }
    }

    @Test
    void theParametersOfAnotherPromptOfTheSameLengthAreNotReadFrom() {
        try (Pair pair = new Pair(LONG_LEASE)) {
            KvTransferParams params = pair.prefilled(prompt(1, 9));
            List<Integer> other = prompt(2, 9);
            assertThat(pair.decoded(other, params).tokens()).isEqualTo(HashModel.oracle(other, 8));
            assertThat(pair.decode.engine.statistics().transfers().transfers()).isEmpty();
            Await.until("the holder was told", pair::isIdle);
        }
    }

    @Test
    void aPromptFromBeforeTheSleepIsNotReadAfterIt() {
        try (Pair pair = new Pair(Duration.ofSeconds(1))) {
            List<Integer> prompt = prompt(3, 9);
            KvTransferParams params = pair.prefilled(prompt);
            // Nobody reads, so this takes until the lease ends.
            cycle(pair.prefill);
            RecordingListener listener = pair.decoded(prompt, params);

            if (listener.last() instanceof GenerationEvent.Finished) {
                assertThat(listener.tokens()).isEqualTo(HashModel.oracle(prompt, 8));
            } else {
                assertThat(listener.tokens()).isEmpty();
            }
            assertThat(pair.decode.engine.statistics().remotePromptTokens()).isZero();
            Await.until(
                    "nothing is left", () -> pair.decode.freeBlocks() == pair.decode.kvBlocks());
            pair.expectOracle(4);
        }
    }

    @Test
    void aDecodeEngineThatClosesLetsItsPrefillEngineFreeWhatItDidNotRead() {
        try (Pair pair = new Pair(LONG_LEASE)) {
            KvTransferParams params = pair.prefilled(prompt(1, 9));
            var _ = pair.decode.engine.pause(PauseMode.KEEP, false).join();
            RecordingListener unread = pair.decode.submit("unread", prompt(1, 9), 8, params);
            pair.decode.close();
            assertThat(unread.reason()).isEqualTo(FinishReason.ABORT);
            Await.until(
                    "the prompt is let go",
                    () -> pair.prefill.engine.statistics().heldForRemote() == 0);
        }
    }

    @Test
    void aRequestThatDRefusesFreesThePromptAtP() {
        try (Pair pair = new Pair(LONG_LEASE)) {
            List<Integer> prompt = prompt(3, 9);
            KvTransferParams params = pair.prefilled(prompt);
            RecordingListener refused =
                    pair.decode.submit("bad", List.of(HashModel.VOCABULARY), 8, params);
            Await.until("the refusal", refused::isOver);

            assertThat(refused.failed().kind())
                    .isEqualTo(GenerationEvent.FailureKind.INVALID_REQUEST);
            Await.until(
                    "P frees it, before the lease ends",
                    LONG_LEASE.dividedBy(2),
                    () -> pair.prefill.freeBlocks() == pair.prefill.kvBlocks(),
                    () -> pair.prefill.engine.statistics());
        }
    }
}
