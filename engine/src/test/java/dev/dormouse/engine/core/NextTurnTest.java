package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.Prompts.prompt;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.connector.CompatibilityFactors;
import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.connector.PullConnector;
import dev.dormouse.connector.ReadBack;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.testkit.Await;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Conversations over a prefill and a decode engine with the real connector, where the prefill
 * engine reads what was said before from the decode engine. It is set to fail requests whose KV
 * cannot be read, which must not matter here.
 */
final class NextTurnTest {
    private static final Duration LONG = Duration.ofMinutes(1);
    private static final int OUTPUT = 8;

    /** Two engines on their own threads. */
    private static final class Pair implements AutoCloseable {
        private final DirectTransport.Network network = new DirectTransport.Network();
        private final EngineHarness prefill;
        private final EngineHarness decode;
        private int requests;
        private int cachedTokens;

        Pair(Duration decodeLease, Duration hold, int decodeBlocks) {
            prefill = start("prefill", LONG, hold, 64);
            decode = start("decode", decodeLease, hold, decodeBlocks);
        }

        private EngineHarness start(String name, Duration lease, Duration hold, int kvBlocks) {
            ConnectorConfig config =
                    ConnectorConfig.builder(
                                    CompatibilityFactors.of(
                                            "hash", "torch.float16", 1, 4, HashModel.LAYERS),
                                    HashModel.BLOCK_TOKENS)
                            .engineId(name)
                            .bindHost("127.0.0.1")
                            .sideChannelPort(0)
                            .leaseDuration(lease)
                            .readBack(new ReadBack(hold, 4))
                            .build();
            EngineHarness harness =
                    new EngineHarness(
                            EngineHarness.failingLoads(
                                    EngineHarness.config(kvBlocks, 8, 64, false)),
                            1,
                            new ConnectorHalves(
                                    PullConnector.scheduler(config),
                                    List.of(
                                            PullConnector.worker(
                                                    config, 0, network.open("a-" + name)))));
            harness.engine.start();
            return harness;
        }

        /** A turn over both engines; expects the oracle, and answers what D holds of it. */
        KvTransferParams turn(List<Integer> prompt, KvTransferParams lastTurn) {
            RecordingListener first = prefill.submit("r" + requests++, prompt, 1, lastTurn);
            Await.until("the prefill ends", first::isOver);
            KvTransferParams prefilled = requireNonNull(first.finished().kvTransferParams());
            RecordingListener second = decode.submit("r" + requests++, prompt, OUTPUT, prefilled);
            Await.until("the decode ends", second::isOver);
            assertThat(second.tokens()).isEqualTo(HashModel.oracle(prompt, OUTPUT));
            cachedTokens = second.finished().usage().cachedTokens();
            return requireNonNull(second.finished().kvTransferParams());
        }

        KvTransferParams firstTurn(List<Integer> prompt) {
            return turn(prompt, FakeConnector.remoteDecode());
        }

        EngineStatistics statistics() {
            return prefill.engine.statistics();
        }

        /** Expects that a turn's whole prompt is computed, and nothing of it read. */
        void expectComputed(List<Integer> prompt, KvTransferParams lastTurn) {
            long computed = statistics().computedPromptTokens();
            long read = statistics().remotePromptTokens();
            turn(prompt, lastTurn);
            assertThat(statistics().computedPromptTokens()).isEqualTo(computed + prompt.size());
            assertThat(statistics().remotePromptTokens()).isEqualTo(read);
            assertThat(cachedTokens).isZero();
        }

        @Override
        public void close() {
            decode.close();
            prefill.close();
        }
    }

    /** What a client says next: all that was said before, and something new. */
    private static List<Integer> next(List<Integer> prompt, int more) {
        List<Integer> next = new ArrayList<>(prompt);
        next.addAll(HashModel.oracle(prompt, OUTPUT));
        next.addAll(prompt(11, more));
        return next;
    }

    @Test
    void whatWasSaidBeforeIsReadFromTheDecodeEngineAndNotComputed() {
        try (Pair pair = new Pair(LONG, LONG, 64)) {
            List<Integer> prompt = prompt(3, 9);
            KvTransferParams held = pair.firstTurn(prompt);
            long computed = pair.statistics().computedPromptTokens();
            long read = 0;
            for (int more : new int[] {1, 3, 4, 7}) {
                // The KV of the last token of the output was never needed.
                int there = prompt.size() + OUTPUT - 1;
                prompt = next(prompt, more);
                held = pair.turn(prompt, held);
                computed += prompt.size() - there;
                read += there;
                assertThat(pair.statistics().computedPromptTokens()).isEqualTo(computed);
                assertThat(pair.statistics().remotePromptTokens()).isEqualTo(read);
                assertThat(pair.cachedTokens).as("what the client is told").isEqualTo(there);
            }
            assertThat(pair.decode.engine.statistics().computedPromptTokens()).isZero();
            Await.until(
                    "only the last turn is held",
                    () -> pair.decode.engine.statistics().heldForRemote() == 1);
        }
    }

    @Test
    void aClientThatChangesWhatWasSaidGetsWhatItWouldGetWithoutParameters() {
        try (Pair pair = new Pair(LONG, LONG, 64)) {
            List<Integer> prompt = prompt(3, 9);
            List<Integer> changed = new ArrayList<>(next(prompt, 5));
            changed.set(4, (changed.get(4) + 1) % HashModel.VOCABULARY);
            pair.expectComputed(changed, pair.firstTurn(prompt));
            pair.expectComputed(prompt(5, 30), pair.firstTurn(prompt));
            pair.expectComputed(prompt, pair.firstTurn(prompt));
        }
    }

    @Test
    void aTurnThatComesAfterTheHoldHasEndedIsComputed() {
        try (Pair pair = new Pair(LONG, Duration.ofMillis(300), 64)) {
            List<Integer> prompt = prompt(3, 9);
            KvTransferParams held = pair.firstTurn(prompt);
            Await.until(
                    "the hold ends", () -> pair.decode.engine.statistics().heldForRemote() == 0);
            // Somebody else's KV is in the blocks by then.
            pair.firstTurn(prompt(4, 30));
            pair.expectComputed(next(prompt, 3), held);
        }
    }

    @Test
    void aTurnThatIsSentTwiceIsReadOnce() {
        try (Pair pair = new Pair(LONG, LONG, 64)) {
            List<Integer> prompt = prompt(3, 9);
            KvTransferParams held = pair.firstTurn(prompt);
            pair.turn(next(prompt, 3), held);
            pair.expectComputed(next(prompt, 3), held);
        }
    }

    @Test
    void parametersThatAreNotUnderstoodCostNothingButTheRead() {
        try (Pair pair = new Pair(LONG, LONG, 64)) {
            List<Integer> prompt = prompt(3, 9);
            ObjectNode broken = pair.firstTurn(prompt).toJson();
            broken.put("remote_port", -1);
            pair.expectComputed(next(prompt, 3), KvTransferParams.of(broken));
        }
    }

    @Test
    void aDecodeEngineThatSleptInBetweenIsNotReadWhateverTheMode() {
        try (Pair pair = new Pair(Duration.ofMillis(300), LONG, 64)) {
            List<Integer> prompt = prompt(3, 9);
            pair.turn(next(prompt, 3), pair.firstTurn(prompt));
            for (PauseMode mode : PauseMode.values()) {
                KvTransferParams held = pair.firstTurn(prompt);
                assertThat(pair.decode.engine.sleep(1, mode).join().changed()).isTrue();
                assertThat(pair.decode.engine.statistics().heldForRemote()).isZero();
                pair.decode.engine.wake(null).join();
                pair.expectComputed(next(prompt, 3), held);
            }
        }
    }

    @Test
    void heldTurnsGiveTheirRoomToRequests() {
        try (Pair pair = new Pair(Duration.ofMillis(300), LONG, 16)) {
            for (int number = 0; number < 8; number++) {
                pair.firstTurn(prompt(number, 9));
            }
            EngineStatistics statistics = pair.decode.engine.statistics();
            assertThat(statistics.transfers().revokedRequests()).isPositive();
            assertThat(statistics.heldForRemote()).isPositive();
            assertThat(statistics.preemptions()).isZero();
        }
    }
}
