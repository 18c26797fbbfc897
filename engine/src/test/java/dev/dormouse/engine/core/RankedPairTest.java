package dev.dormouse.engine.core;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.connector.CompatibilityFactors;
import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.connector.PullConnector;
import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.connector.WorkerConnector;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.tokenizer.Tokenizer;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Prefill and decode engines of differing numbers of ranks, with the default model and the real
 * connector: each rank of the decode engine finds its KV heads in whichever rank has them.
 */
final class RankedPairTest {
    private static final Duration LIMIT = Duration.ofMinutes(5);
    private static final int TOKENS = 4;
    private static final List<String> TEXTS =
            List.of(
                    "A list of the planets, from the sun outwards: Mercury, Venus,",
                    "The dormouse sleeps through the winter, and when it wakes in spring, it looks for");

    /** Both engines, stepped in turn. */
    private static final class Pair implements AutoCloseable {
        private final DirectTransport.Network network = new DirectTransport.Network();
        private final RankedEngine prefill;
        private final RankedEngine decode;
        private int requests;

        Pair(GgufFile file, int prefillRanks, int decodeRanks) {
            prefill = start(file, "prefill", prefillRanks);
            decode = start(file, "decode", decodeRanks);
        }

        private RankedEngine start(GgufFile file, String name, int ranks) {
            ConnectorConfig config =
                    ConnectorConfig.builder(
                                    CompatibilityFactors.of(
                                            "m", "torch.float16", 3, 64, RankedEngine.LAYERS),
                                    RankedEngine.BLOCK_TOKENS)
                            .engineId(name)
                            .bindHost("127.0.0.1")
                            .sideChannelPort(0)
                            .tpSize(ranks)
                            .build();
            List<WorkerConnector> workers = new ArrayList<>();
            for (int rank = 0; rank < ranks; rank++) {
                workers.add(PullConnector.worker(config, rank, network.open(name + "-" + rank)));
            }
            return new RankedEngine(
                    file, ranks, new ConnectorHalves(PullConnector.scheduler(config), workers));
        }

        void await(String what, BooleanSupplier condition) {
            Await.until(
                    what,
                    LIMIT,
                    () -> {
                        prefill.step();
                        decode.step();
                        return condition.getAsBoolean();
                    },
                    () -> decode.engine.statistics());
        }

        List<Integer> ask(List<Integer> prompt) {
            RecordingListener first =
                    prefill.submit("p" + requests, prompt, 1, FakeConnector.remoteDecode());
            await("the prefill ends", first::isOver);
            KvTransferParams params = requireNonNull(first.finished().kvTransferParams());
            RecordingListener second = decode.submit("d" + requests++, prompt, TOKENS, params);
            await("the decode ends", second::isOver);
            second.finished();
            await("P holds nothing", () -> prefill.engine.statistics().heldForRemote() == 0);
            return second.tokens();
        }

        void sleepAndWake(RankedEngine sleeper, int level) {
            var asleep = sleeper.engine.sleep(level, PauseMode.WAIT);
            await("the sleep", asleep::isDone);
            assertThat(asleep.join().changed()).isTrue();
            var awake = sleeper.engine.wake(null);
            await("the wake", awake::isDone);
            assertThat(awake.join().changed()).isTrue();
        }

        @Override
        public void close() {
            decode.close();
            prefill.close();
        }
    }

    @ParameterizedTest
    @CsvSource({"1, 3", "3, 1", "3, 3"})
    void tokensAreTheControlsWhoeverSlept(int prefillRanks, int decodeRanks) {
        try (GgufFile file = GgufFile.open(Natives.model());
                Pair pair = new Pair(file, prefillRanks, decodeRanks)) {
            Tokenizer tokenizer = Tokenizer.of(file.metadata());
            List<List<Integer>> prompts = new ArrayList<>();
            List<List<Integer>> controls = new ArrayList<>();
            for (String text : TEXTS) {
                prompts.add(Arrays.stream(tokenizer.encode(text, true, false)).boxed().toList());
                controls.add(pair.decode.generate(text, prompts.getLast(), TOKENS));
            }
            long computed = pair.decode.engine.statistics().computedPromptTokens();
            List<Runnable> between =
                    List.of(
                            () -> {},
                            () -> pair.sleepAndWake(pair.prefill, 1),
                            () -> pair.sleepAndWake(pair.decode, 2),
                            () -> {
                                pair.sleepAndWake(pair.decode, 1);
                                pair.sleepAndWake(pair.prefill, 2);
                            });
            int reads = 0;
            long bytes = 0;
            for (int round = 0; round < between.size(); round++) {
                between.get(round).run();
                for (int i = 0; i < prompts.size(); i++) {
                    assertThat(pair.ask(prompts.get(i)))
                            .as("round %d, prompt %d", round, i)
                            .isEqualTo(controls.get(i));
                    reads += Math.max(prefillRanks, decodeRanks);
                    bytes +=
                            Math.ceilDiv(prompts.get(i).size(), RankedEngine.BLOCK_TOKENS)
                                    * RankedEngine.BLOCK_BYTES;
                }
                EngineStatistics decode = pair.decode.engine.statistics();
                assertThat(decode.transferSizes().bytes().count()).isEqualTo(reads);
                assertThat(decode.transferSizes().bytes().sum()).isEqualTo((double) bytes);
                TransferStatistics transfers = decode.transfers();
                assertThat(transfers.handshakes())
                        .as("one of each rank per wake, round %d", round)
                        .isEqualTo((round + 1L) * decodeRanks);
                assertThat(transfers.failedTransfers()).isZero();
                assertThat(transfers.failedHandshakes()).isZero();
                assertThat(decode.computedPromptTokens()).as("recomputed").isEqualTo(computed);
                assertThat(decode.remoteFirstTokens()).isEqualTo((round + 1L) * prompts.size());
            }
        }
    }
}
