package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.HashModel.BLOCK_TOKENS;
import static dev.dormouse.engine.core.Prompts.prompt;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.connector.FinishKind;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.PauseMode;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Prompts that are read from other engines, and blocks that are held for them. */
final class RemoteKvTest {
    private final FakeConnector connector = new FakeConnector(1);

    private EngineHarness engine(EngineConfig config) {
        return new EngineHarness(config, connector).opened();
    }

    private RecordingListener read(EngineHarness engine, String id, List<Integer> prompt, int max) {
        return engine.submit(id, prompt, max, connector.remotePrefill(prompt));
    }

    private String reading(String requestId) {
        return FakeConnector.idOf(connector.reads.keySet(), requestId);
    }

    @Test
    void aPromptThatWasReadIsNotComputed() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            for (int length : new int[] {1, BLOCK_TOKENS - 1, BLOCK_TOKENS, BLOCK_TOKENS + 1, 22}) {
                List<Integer> prompt = prompt(length, length);
                RecordingListener listener = read(engine, "r" + length, prompt, 6);
                engine.settle();
                assertThat(engine.engine.statistics().waitingForRemoteKv()).isEqualTo(1);
                assertThat(listener.tokens()).isEmpty();
                connector.endRead(reading("r" + length), true);
                engine.settle();

                assertThat(listener.tokens())
                        .as("prompt of %d tokens", length)
                        .isEqualTo(HashModel.oracle(prompt, 6));
            }
            EngineStatistics statistics = engine.engine.statistics();
            assertThat(statistics.computedPromptTokens()).isZero();
            assertThat(statistics.remotePromptTokens()).isEqualTo(1 + 3 + 4 + 5 + 22);
            assertThat(statistics.waitingForRemoteKv()).isZero();
            assertThat(engine.model().chunkSizes()).allMatch(size -> size == 1);
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }

    @Test
    void holdsThatNobodyReliesOnEndForTheirRoomTheOldestFirst() {
        EngineConfig config = EngineHarness.config(10, 8, 64, false);
        try (EngineHarness engine = engine(config)) {
            for (String id : List.of("a", "b", "c")) {
                engine.submit(id, prompt(1, 3 * BLOCK_TOKENS), 1, FakeConnector.remoteDecode());
                engine.settle();
            }
            String oldest = FakeConnector.idOf(connector.held, "a");
            String second = FakeConnector.idOf(connector.held, "b");
            List<Integer> prompt = prompt(2, 3 * BLOCK_TOKENS);
            RecordingListener waits = engine.submit("waits", prompt, BLOCK_TOKENS + 2);
            engine.settle();
            assertThat(connector.toldToEnd).isEmpty();
            assertThat(waits.tokens()).isEmpty();

            connector.endable.addAll(List.of(second, oldest));
            engine.settle();
            assertThat(connector.toldToEnd).as("as many as are needed").containsExactly(oldest);
            connector.endHold(oldest);
            engine.settle();
            assertThat(connector.toldToEnd)
                    .as("the output needs more blocks")
                    .containsExactly(oldest, second);
            assertThat(waits.isOver()).as("waits instead of losing what it has").isFalse();
            connector.endHold(second);
            engine.settle();
            waits.finished();
            assertThat(waits.tokens()).isEqualTo(HashModel.oracle(prompt, BLOCK_TOKENS + 2));
            assertThat(engine.engine.statistics().preemptions()).isZero();
        }
    }

    @Test
    void onlyWhatIsNotCachedIsRead() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            List<Integer> prompt = prompt(7, 6 * BLOCK_TOKENS);
            List<Integer> oracle = HashModel.oracle(prompt, 4);
            for (int warm = 1; warm <= 6; warm++) {
                assertThat(engine.made(engine.engine.resetPrefixCache()).bytes()).isZero();
                var _ = engine.generate("warm" + warm, prompt.subList(0, warm * BLOCK_TOKENS), 1);
                RecordingListener listener = read(engine, "r" + warm, prompt, 4);
                engine.settle();
                // The block of the last token is never taken from the cache.
                int cached = Math.min(warm, 5) * BLOCK_TOKENS;
                assertThat(connector.allocations.get(reading("r" + warm)))
                        .containsExactly(cached, 6 * BLOCK_TOKENS - cached);
                connector.endRead(reading("r" + warm), true);
                engine.settle();

                assertThat(listener.tokens()).as("%d warm blocks", warm).isEqualTo(oracle);
                assertThat(listener.finished().usage().cachedTokens()).isEqualTo(cached);
            }
        }
    }

    @Test
    void aPromptThatWasReadIsFoundByTheNextRequest() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            List<Integer> prompt = prompt(7, 3 * BLOCK_TOKENS + 1);
            connector.readsEndAtOnce = true;
            read(engine, "first", prompt, 2);
            engine.settle();
            RecordingListener second = engine.submit("second", prompt, 5);
            engine.settle();

            assertThat(second.finished().usage().cachedTokens()).isEqualTo(3 * BLOCK_TOKENS);
            assertThat(second.tokens()).isEqualTo(HashModel.oracle(prompt, 5));
        }
    }

    @Test
    void whatOtherEnginesDoNotHoldIsComputed() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            connector.readsEndAtOnce = true;
            connector.maxExternalTokens = 10;
            List<Integer> prompt = prompt(7, 23);
            RecordingListener listener = read(engine, "r", prompt, 6);
            engine.settle();

            assertThat(listener.tokens()).isEqualTo(HashModel.oracle(prompt, 6));
            assertThat(engine.engine.statistics().remotePromptTokens()).isEqualTo(10);
            assertThat(engine.engine.statistics().computedPromptTokens()).isEqualTo(13);
        }
    }

    @Test
    void readsTakeTheSlotsOfSequences() {
        try (EngineHarness engine = engine(EngineHarness.config(64, 2, 16, true))) {
            for (int i = 0; i < 3; i++) {
                read(engine, "r" + i, prompt(i, 9), 3);
            }
            engine.settle();

            assertThat(connector.reads).hasSize(2);
            assertThat(engine.engine.statistics().waiting()).isEqualTo(1);
        }
    }

    @Test
    void aFailedReadIsRecomputed() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            List<Integer> prompt = prompt(7, 22);
            RecordingListener listener = read(engine, "r", prompt, 6);
            engine.settle();
            connector.endRead(reading("r"), false);
            engine.settle();

            assertThat(listener.tokens()).isEqualTo(HashModel.oracle(prompt, 6));
            assertThat(engine.engine.statistics().computedPromptTokens()).isEqualTo(22);
            assertThat(engine.engine.statistics().remotePromptTokens()).isZero();
            assertThat(connector.reads).isEmpty();
        }
    }

    @Test
    void aFailedReadFailsTheRequestIfSoConfigured() {
        try (EngineHarness engine = engine(EngineHarness.failingLoads(EngineHarness.roomy()))) {
            List<Integer> prompt = prompt(7, 22);
            RecordingListener listener = read(engine, "r", prompt, 6);
            engine.settle();
            connector.endRead(reading("r"), false);
            engine.settle();

            assertThat(listener.failed().kind()).isEqualTo(FailureKind.KV_TRANSFER_FAILED);
            assertThat(listener.failed().message())
                    .contains("request=r")
                    .as("the address is for the log")
                    .doesNotContain(FakeConnector.PEER);
            assertThat(listener.tokens()).isEmpty();
            assertThat(connector.finishKinds).containsValue(FinishKind.FAILED);
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
            // Nothing of the failed read is taken for the prompt's KV.
            assertThat(engine.generate("next", prompt, 6)).isEqualTo(HashModel.oracle(prompt, 6));
        }
    }

    @Test
    void blocksOfALiveReadAreNotFreedWithTheirRequest() {
        try (EngineHarness engine = engine(EngineHarness.config(8, 4, 16, true))) {
            RecordingListener listener = read(engine, "r", prompt(7, 6 * BLOCK_TOKENS), 4);
            engine.settle();
            String id = reading("r");
            engine.engine.abort("r");
            engine.settle();

            assertThat(listener.reason()).isEqualTo(FinishReason.ABORT);
            assertThat(engine.freeBlocks()).isEqualTo(2);
            RecordingListener next = engine.submit("next", prompt(8, 12), 4);
            engine.settle();
            assertThat(next.isOver()).as("needs blocks of the live read").isFalse();

            connector.endRead(id, true);
            engine.settle();
            assertThat(next.tokens()).isEqualTo(HashModel.oracle(prompt(8, 12), 4));
            assertThat(engine.freeBlocks()).isEqualTo(8);
        }
    }

    @Test
    void reportsThatAreLateTwiceOrUnknownChangeNothing() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            RecordingListener producer =
                    engine.submit("p", prompt(1, 9), 1, FakeConnector.remoteDecode());
            RecordingListener consumer = read(engine, "d", prompt(2, 9), 20);
            engine.settle();
            String sent = connector.held.iterator().next();
            String received = reading("d");
            connector.endRead(received, true);
            FakeConnector.Rank rank = connector.ranks.getFirst();
            rank.sent.add(sent);
            rank.sent.add("unknown");
            rank.received.add("unknown");
            engine.step();
            rank.sent.add(sent);
            rank.received.add(received);
            rank.failed.add(received);
            engine.settle();
            rank.sent.add(received);
            rank.received.add(sent);
            engine.settle();

            assertThat(producer.reason()).isEqualTo(FinishReason.LENGTH);
            assertThat(consumer.tokens()).isEqualTo(HashModel.oracle(prompt(2, 9), 20));
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
            assertThat(engine.generate("next", prompt(3, 9), 5))
                    .isEqualTo(HashModel.oracle(prompt(3, 9), 5));
        }
    }

    @Test
    void aHandedOverPromptKeepsItsBlocksUntilItWasRead() {
        try (EngineHarness engine = engine(EngineHarness.config(4, 4, 16, false))) {
            RecordingListener listener =
                    engine.submit("p", prompt(1, 9), 1, FakeConnector.remoteDecode());
            engine.settle();
            String id = connector.held.iterator().next();

            assertThat(listener.finished().kvTransferParams()).isNotNull();
            assertThat(connector.finished).containsEntry(id, 9);
            assertThat(connector.finishBlocks.get(id)).hasSize(3);
            assertThat(engine.freeBlocks()).isEqualTo(1);
            assertThat(engine.engine.statistics().heldForRemote()).isEqualTo(1);

            RecordingListener next = engine.submit("next", prompt(2, 9), 2);
            engine.settle();
            assertThat(next.isOver()).isFalse();
            connector.endHold(id);
            engine.settle();
            assertThat(next.tokens()).isEqualTo(HashModel.oracle(prompt(2, 9), 2));
            assertThat(engine.freeBlocks()).isEqualTo(4);
        }
    }

    @Test
    void blocksThatSeveralHoldsShareAreCountedOnce() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            assertThat(engine.engine.statistics().kvBlocksHeld()).isZero();
            List<Integer> prompt = prompt(1, 3 * BLOCK_TOKENS);
            engine.submit(
                    "a", prompt.subList(0, 2 * BLOCK_TOKENS + 1), 1, FakeConnector.remoteDecode());
            engine.settle();
            assertThat(engine.engine.statistics().kvBlocksHeld()).isEqualTo(3);
            engine.submit("b", prompt, 1, FakeConnector.remoteDecode());
            engine.settle();
            assertThat(engine.engine.statistics().heldForRemote()).isEqualTo(2);
            assertThat(engine.engine.statistics().kvBlocksHeld())
                    .as("two of the prefix, and one of each")
                    .isEqualTo(4);
            connector.endHold(FakeConnector.idOf(connector.held, "a"));
            engine.settle();
            assertThat(engine.engine.statistics().kvBlocksHeld()).isEqualTo(3);
            connector.endHold(FakeConnector.idOf(connector.held, "b"));
            engine.settle();
            assertThat(engine.engine.statistics().kvBlocksHeld()).isZero();
        }
    }

    @Test
    void aPromptWhoseFirstTokenEndsItIsHandedOverAsStopped() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            int first = HashModel.oracle(prompt(1, 9), 1).getFirst();
            RecordingListener listener =
                    engine.submit(
                            "p",
                            prompt(1, 9),
                            Samplings.until(1, first),
                            FakeConnector.remoteDecode());
            engine.settle();

            assertThat(listener.reason()).isEqualTo(FinishReason.STOP);
            assertThat(connector.finishKinds).containsValue(FinishKind.STOPPED);
            assertThat(listener.finished().kvTransferParams()).isNotNull();
        }
    }

    @Test
    void producersUnderPressureNeverHandOverLessThanTheWholePrompt() {
        try (EngineHarness engine = engine(EngineHarness.config(7, 4, 5, false))) {
            List<RecordingListener> listeners = new ArrayList<>();
            for (int i = 0; i < 6; i++) {
                listeners.add(
                        engine.submit("p" + i, prompt(i, 21), 1, FakeConnector.remoteDecode()));
            }
            engine.stepUntil(
                    "all are handed over",
                    () -> {
                        List.copyOf(connector.held).forEach(connector::endHold);
                        return listeners.stream().allMatch(RecordingListener::isOver);
                    });
            engine.settle();

            assertThat(connector.finished.values()).hasSize(6).allMatch(tokens -> tokens == 21);
            assertThat(connector.finishBlocks.values()).allMatch(blocks -> blocks.length == 6);
            assertThat(engine.freeBlocks()).isEqualTo(7);
        }
    }

    @Test
    void readersInATinyPoolAllEnd() {
        try (EngineHarness engine = engine(EngineHarness.config(9, 3, 16, true))) {
            List<RecordingListener> listeners = new ArrayList<>();
            connector.readsEndAtOnce = true;
            for (int i = 0; i < 8; i++) {
                listeners.add(read(engine, "r" + i, prompt(i, 11), 20));
            }
            engine.settle();

            for (int i = 0; i < 8; i++) {
                assertThat(listeners.get(i).tokens())
                        .isEqualTo(HashModel.oracle(prompt(i, 11), 20));
            }
            assertThat(engine.engine.statistics().preemptions()).isPositive();
            assertThat(engine.freeBlocks()).isEqualTo(9);
        }
    }

    @Test
    void aRequestThatIsRefusedIsToldToItsProducer() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            RecordingListener listener = read(engine, "r", prompt(1, 200), 1);
            engine.settle();

            assertThat(listener.failed().kind()).isEqualTo(FailureKind.INVALID_REQUEST);
            assertThat(connector.finishKinds).containsValue(FinishKind.FAILED);
            assertThat(connector.finished).containsValue(0);
        }
    }

    @Test
    void aRequestThatIsRefusedWhilePausedIsToldToItsProducer() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            engine.made(engine.engine.pause(PauseMode.WAIT, false));
            RecordingListener listener = read(engine, "r", prompt(1, 9), 1);
            engine.settle();

            assertThat(listener.failed().kind()).isEqualTo(FailureKind.PAUSED);
            assertThat(connector.finishKinds.values()).containsExactly(FinishKind.FAILED);
        }
    }

    @Test
    void aRequestThatNeverComesIsToldToItsProducerAndNothingElse() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            engine.engine.decline(connector.remotePrefill(prompt(1, 9)));
            engine.engine.decline(FakeConnector.remoteDecode());
            engine.settle();

            assertThat(connector.finishKinds.values()).containsExactly(FinishKind.FAILED);
            assertThat(connector.finished.values()).containsExactly(0);
            assertThat(engine.freeBlocks()).isEqualTo(engine.kvBlocks());
        }
    }

    @Test
    void producersAreNotToldAsleepSinceNoMessageLeaves() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            engine.made(engine.engine.sleep(1, PauseMode.WAIT));
            for (int i = 0; i <= LocalEngine.MAX_PENDING_DECLINES; i++) {
                engine.engine.decline(connector.remotePrefill(prompt(i, 9)));
            }
            engine.settle();
            engine.made(engine.engine.wake(null));
            assertThat(connector.finished).isEmpty();

            engine.engine.decline(connector.remotePrefill(prompt(1, 9)));
            engine.settle();
            assertThat(connector.finished).hasSize(1);
        }
    }

    @Test
    void declinesNeverFillTheInbox() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            for (int i = 0; i < 100 * LocalEngine.MAX_PENDING_DECLINES; i++) {
                engine.engine.decline(connector.remotePrefill(prompt(1, 1)));
            }
            List<Integer> prompt = prompt(1, 9);
            RecordingListener listener = engine.submit("r", prompt, 5);
            engine.settle();

            assertThat(listener.tokens()).isEqualTo(HashModel.oracle(prompt, 5));
            assertThat(connector.finished).hasSize(LocalEngine.MAX_PENDING_DECLINES + 1);
        }
    }

    @Test
    void aStuckReadFailsItsRequestAtOnceAndKeepsItsBlocksFromEverybody() {
        EngineConfig tiny = EngineHarness.failingLoads(EngineHarness.config(8, 4, 16, true));
        try (EngineHarness engine = engine(tiny)) {
            RecordingListener listener = read(engine, "r", prompt(7, 6 * BLOCK_TOKENS), 4);
            engine.settle();
            String id = reading("r");
            connector.abandonRead(id);
            engine.settle();

            assertThat(listener.failed().kind()).isEqualTo(FailureKind.KV_TRANSFER_FAILED);
            assertThat(engine.freeBlocks()).as("its blocks are not free").isEqualTo(2);
            assertThat(engine.engine.statistics().kvBlocksQuarantined()).isEqualTo(6);
            assertThat(engine.engine.core().expectation()).isEqualTo(EngineCore.Expectation.PEER);
            connector.endRead(id, false);
            engine.settle();
            assertThat(engine.freeBlocks()).isEqualTo(8);
            assertThat(engine.engine.statistics().kvBlocksQuarantined()).isZero();
        }
    }

    @Test
    void aRequestThatFindsNoRoomBesideQuarantinedBlocksWaits() {
        EngineConfig tiny = EngineHarness.failingLoads(EngineHarness.config(8, 4, 16, true));
        try (EngineHarness engine = engine(tiny)) {
            read(engine, "stuck", prompt(7, 6 * BLOCK_TOKENS), 4);
            engine.settle();
            String id = reading("stuck");
            connector.abandonRead(id);
            engine.settle();
            List<Integer> prompt = prompt(8, 4 * BLOCK_TOKENS);
            RecordingListener next = engine.submit("next", prompt, 3);
            engine.settle();
            assertThat(next.isOver()).isFalse();
            connector.endRead(id, false);
            engine.settle();
            assertThat(next.tokens()).isEqualTo(HashModel.oracle(prompt, 3));
        }
    }

    @Test
    void aStuckReadIsRecomputedInOtherBlocks() {
        try (EngineHarness engine = engine(EngineHarness.config(16, 4, 64, true))) {
            List<Integer> prompt = prompt(7, 4 * BLOCK_TOKENS);
            RecordingListener listener = read(engine, "r", prompt, 6);
            engine.settle();
            String id = reading("r");
            connector.abandonRead(id);
            engine.settle();

            assertThat(listener.tokens()).isEqualTo(HashModel.oracle(prompt, 6));
            assertThat(engine.freeBlocks()).isEqualTo(16 - 4);
            connector.endRead(id, true); // late data, into blocks that nobody uses
            engine.settle();
            assertThat(engine.freeBlocks()).isEqualTo(16);
            assertThat(engine.generate("next", prompt, 6)).isEqualTo(HashModel.oracle(prompt, 6));
        }
    }

    @Test
    void aReadThatGetsStuckAfterItsRequestLeftIsQuarantinedToo() {
        try (EngineHarness engine = engine(EngineHarness.config(8, 4, 16, true))) {
            read(engine, "r", prompt(7, 3 * BLOCK_TOKENS), 4);
            engine.settle();
            String id = reading("r");
            engine.engine.abort("r");
            engine.settle();
            connector.abandonRead(id);
            engine.settle();
            assertThat(engine.freeBlocks()).isLessThan(8);
            connector.endRead(id, false);
            engine.settle();
            assertThat(engine.freeBlocks()).isEqualTo(8);
        }
    }

    @Test
    void withTooManyBlocksInQuarantinePromptsAreComputedHere() {
        try (EngineHarness engine = engine(EngineHarness.config(16, 4, 64, true))) {
            read(engine, "stuck", prompt(7, 4 * BLOCK_TOKENS), 1);
            engine.settle();
            connector.abandonRead(reading("stuck"));
            engine.settle();
            int reads = connector.reads.size();
            List<Integer> prompt = prompt(8, 9);
            RecordingListener next = read(engine, "next", prompt, 3);
            engine.settle();
            assertThat(connector.reads).hasSize(reads);
            assertThat(next.tokens()).isEqualTo(HashModel.oracle(prompt, 3));
        }
    }

    @Test
    void idsInMessagesToPeersAreCleanAndNeverTheSame() {
        try (EngineHarness engine = engine(EngineHarness.roomy())) {
            String hostile = "a,b:c d\n" + "x".repeat(500);
            engine.submit(hostile, prompt(1, 5), 1);
            engine.settle();
            engine.submit(hostile, prompt(1, 5), 1);
            engine.settle();

            assertThat(connector.finished.keySet())
                    .hasSize(2)
                    .allMatch(id -> id.matches("a_b:c_d_x+-[0-9a-f]{8}") && id.length() < 170);
        }
    }

    @Test
    void aReadEndsWhenEveryRankHasEndedIt() {
        FakeConnector two = new FakeConnector(2);
        try (EngineHarness engine = new EngineHarness(EngineHarness.roomy(), two).opened()) {
            List<Integer> prompt = prompt(3, 10);
            RecordingListener listener = engine.submit("r", prompt, 5, two.remotePrefill(prompt));
            engine.settle();
            String id = FakeConnector.idOf(two.reads.keySet(), "r");
            two.ranks.get(1).endRead(id, false);
            engine.settle();
            assertThat(engine.engine.statistics().waitingForRemoteKv()).isEqualTo(1);
            two.ranks.get(0).endRead(id, true);
            engine.settle();

            assertThat(listener.tokens()).isEqualTo(HashModel.oracle(prompt, 5));
            assertThat(engine.engine.statistics().computedPromptTokens())
                    .as("failed on one rank, so recomputed on all")
                    .isEqualTo(10);
        }
    }
}
