package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.ModelCounts;
import dev.dormouse.testkit.Seeded;
import dev.dormouse.transport.PeerMessage;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Reads of a prompt's blocks from the engine that computed them. */
final class PullReadTest {
    private final ModelWorld world = new ModelWorld();
    private final ModelEngine p = world.start("P");
    private final ModelEngine d = world.start("D");

    @Test
    void aPromptIsReadAndItsHolderFreesTheBlocks() {
        KvTransferParams params = p.prefill("p1", 10, new int[] {3, 1, 7}, 1);
        assertThat(p.scheduler().heldRequests()).isEqualTo(1);

        d.decode("d1", 10, params, new int[] {5, 0, 2});
        world.settle();

        assertThat(d.received()).containsExactly("d1");
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(new int[] {5, 0, 2}, 1)).isTrue();
        assertThat(p.sent()).containsExactly("p1");
        assertThat(p.scheduler().heldRequests()).isZero();
        assertThat(d.statistics().handshakes()).isEqualTo(1);
        assertThat(d.statistics().transfers()).hasSize(1);
        assertThat(d.statistics().transfers().getFirst().bytes())
                .isEqualTo(3L * ModelEngine.LAYERS * ModelEngine.BLOCK_BYTES);
    }

    @Test
    void readsOfManySizesMoveExactlyTheirBlocks() {
        Seeded.forAll(
                60,
                random -> {
                    ModelWorld own = new ModelWorld();
                    ModelEngine holder = own.start("P");
                    ModelEngine reader = own.start("D");
                    int tokens = random.nextInt(1, 25);
                    int blocks = Math.ceilDiv(tokens, ModelEngine.BLOCK_TOKENS);
                    int[] from = distinct(random, blocks);
                    int[] to = distinct(random, blocks);
                    int cached = random.nextInt(0, (tokens - 1) / ModelEngine.BLOCK_TOKENS + 1);
                    int[] others =
                            IntStream.range(0, ModelEngine.BLOCKS)
                                    .filter(block -> isAbsent(block, to, cached))
                                    .toArray();
                    reader.fill(others, 99);

                    KvTransferParams params = holder.prefill("p1", tokens, from, 7);
                    reader.decode("d1", tokens, params, to, cached * ModelEngine.BLOCK_TOKENS);
                    own.settle();

                    assertThat(reader.failed()).isEmpty();
                    assertThat(reader.holds(to, 7, cached)).isTrue();
                    assertThat(reader.holds(others, 99)).as("nothing else was written").isTrue();
                    assertThat(reader.statistics().transfers().getFirst().bytes())
                            .isEqualTo(
                                    (long) (blocks - cached)
                                            * ModelEngine.LAYERS
                                            * ModelEngine.BLOCK_BYTES);
                    assertThat(holder.sent()).containsExactly("p1");
                });
    }

    @Test
    void aPrefixThatIsCachedHereIsNotReadAndTheTailPairsWithTheTail() {
        KvTransferParams params = p.prefill("p1", 16, new int[] {3, 1, 7, 2}, 1);
        d.fill(new int[] {8, 9, 10, 11}, 50);
        d.decode("d1", 16, params, new int[] {8, 9, 10, 11}, 8);
        world.settle();
        assertThat(d.holds(new int[] {8, 9}, 50)).isTrue();
        assertThat(d.holds(new int[] {8, 9, 10, 11}, 1, 2)).isTrue();
    }

    @Test
    void thePeersLastBlockIsReadAndTheOneBehindItIsNot() {
        int last = ModelEngine.BLOCKS - 1;
        KvTransferParams params = p.prefill("p1", 4, new int[] {last}, 1);
        d.decode("d1", 4, params, new int[] {2});
        world.settle();
        assertThat(d.failed()).isEmpty();
        assertThat(d.holds(new int[] {2}, 1)).isTrue();
        KvTransferParams behind =
                Params.changed(
                        p.prefill("p2", 4, new int[] {last}, 1),
                        json -> json.putArray("remote_block_ids").addArray().add(last + 1));
        d.decode("d2", 4, behind, new int[] {2});
        world.settle();
        assertThat(d.failed()).containsExactly("d2");
        assertThat(d.reason("d2")).contains("remote block " + (last + 1) + " does not exist");
    }

    @Test
    void manyRequestsShareOneHandshake() {
        for (int i = 0; i < 8; i++) {
            KvTransferParams params = p.prefill("p" + i, 4, new int[] {i}, i);
            d.decode("d" + i, 4, params, new int[] {11 - i});
        }
        world.settle();
        assertThat(d.received()).hasSize(8);
        assertThat(d.failed()).isEmpty();
        for (int i = 0; i < 8; i++) {
            assertThat(d.holds(new int[] {11 - i}, i)).isTrue();
        }
        assertThat(world.sideChannels().fetches()).isEqualTo(1);
        assertThat(d.statistics().handshakes()).isEqualTo(1);
        assertThat(p.sent()).hasSize(8);
    }

    @Test
    void everyRankReadsFromTheRankThatMatchesAndAllMustFinish() {
        ModelEngine wideP = world.start(world.config("P2").tpSize(2));
        ModelEngine wideD = world.start(world.config("D2").tpSize(2));
        wideD.ranks().get(1).transport().faults().setReadDelay(Duration.ofMillis(20));
        KvTransferParams params = wideP.prefill("p1", 8, new int[] {3, 1}, 5);
        wideD.decode("d1", 8, params, new int[] {4, 6});
        for (int i = 0; i < 10; i++) {
            world.tick();
        }
        assertThat(wideD.received()).as("rank 1 still reads").isEmpty();
        world.settle();
        assertThat(wideD.received()).containsExactly("d1");
        assertThat(wideD.holds(new int[] {4, 6}, 5)).isTrue();
        assertThat(wideP.sent()).containsExactly("p1");
    }

    @Test
    void heartbeatsKeepAQueuedRequestsBlocks() {
        KvTransferParams params = p.prefill("p1", 4, new int[] {0}, 1);
        ConnectorRequest request = new ConnectorRequest("d1", 4, params);
        d.scheduler().onArrival(request);
        for (int second = 0; second < 120; second++) {
            world.elapse(Duration.ofSeconds(1));
            world.tick();
        }
        assertThat(p.sent()).as("renewed for two minutes").isEmpty();
        assertThat(d.scheduler().externalTokens(request, 0)).isEqualTo(4);
        d.scheduler().onAllocated(request, new int[] {2}, 0, 4);
        world.settle();
        assertThat(d.holds(new int[] {2}, 1)).isTrue();
        assertThat(d.statistics().handshakes()).as("the heartbeat's handshake serves").isEqualTo(1);
        assertThat(p.sent()).containsExactly("p1");
    }

    @Test
    void aHandOverThatNobodyReadsExpiresOnceAndALateReaderIsCounted() {
        p.prefill("p1", 4, new int[] {0}, 1);
        world.tick();
        world.elapse(Duration.ofSeconds(29));
        world.tick();
        assertThat(p.sent()).isEmpty();
        world.elapse(Duration.ofSeconds(1));
        world.tick();
        assertThat(p.sent()).containsExactly("p1");
        assertThat(p.statistics().expiredLeases()).isEqualTo(1);
        assertThat(p.statistics().failures()).isZero();
        assertThat(p.scheduler().heldRequests()).isZero();

        inject("p1:1");
        inject("p1:1");
        inject("HB:p1");
        world.settle();
        assertThat(p.statistics().notificationsAfterExpiry()).isEqualTo(2);
        assertThat(p.statistics().expiredRequests()).isEqualTo(1);
        world.elapse(Duration.ofMinutes(10));
        world.settle();
        assertThat(p.statistics().expiredRequests()).isEqualTo(1);
    }

    @Test
    void malformedMessagesAreCountedAndHarmless() {
        for (String bad : List.of("", "p1", "p1:", "p1:x", "p1:0", "p1:-1", ":")) {
            inject(bad);
        }
        world.fabric()
                .inject(
                        p.rank().transport().agentName(),
                        new PeerMessage("x", new byte[] {(byte) 0xff, (byte) 0xfe}));
        world.settle();
        assertThat(p.statistics().malformedNotifications()).isEqualTo(8);
        world.fabric()
                .inject(
                        p.rank().transport().agentName(),
                        new PeerMessage("x", new PushEnd("p1", true).encode()));
        world.settle();
        assertThat(p.statistics().malformedNotifications()).as("nothing is pushed").isEqualTo(9);
        for (int i = 0; i < 2; i++) {
            world.fabric()
                    .inject(
                            p.rank().transport().agentName(),
                            new PeerMessage("x", new byte[(1 << 20) + 1]));
        }
        world.settle();
        assertThat(p.statistics().malformedNotifications())
                .as("dropped by the transport")
                .isEqualTo(11);
        KvTransferParams params = p.prefill("p1", 4, new int[] {0}, 1);
        d.decode("d1", 4, params, new int[] {2});
        world.settle();
        assertThat(p.sent()).containsExactly("p1");
        assertThat(p.statistics().malformedNotifications()).isEqualTo(11);
    }

    @Test
    void severalConsumersMustAllReadAndOneCannotCountTwice() {
        p.prefill("p1", 4, new int[] {0}, 1);
        world.tick();
        inject("first", "p1:2");
        inject("first", "p1:2");
        world.settle();
        assertThat(p.sent()).isEmpty();
        inject("second", "p1:2");
        world.settle();
        assertThat(p.sent()).containsExactly("p1");
    }

    @Test
    void aRenewalNeverShortensALease() {
        p.prefill("p1", 4, new int[] {0}, 1);
        world.tick();
        world.elapse(Duration.ofSeconds(1));
        inject("HB:unknown,p1");
        world.settle();
        world.elapse(Duration.ofSeconds(25));
        world.settle();
        assertThat(p.sent()).as("21 s would be over, 30 s are not").isEmpty();
        inject("HB:p1");
        world.settle();
        world.elapse(Duration.ofSeconds(19));
        world.settle();
        assertThat(p.sent()).isEmpty();
        world.elapse(Duration.ofSeconds(1));
        world.settle();
        assertThat(p.sent()).containsExactly("p1");
    }

    @Test
    void aLeaseThatComesAfterTheReadHoldsNothing() {
        ConnectorRequest request = new ConnectorRequest("p1", 4, Params.prefill());
        p.scheduler().onAllocated(request, new int[] {0}, 0, 0);
        world.tick();
        HandOver _ = p.scheduler().onFinished(request, FinishKind.LENGTH, new int[] {0}, 4);
        inject("p1:1");
        WorkerReport early = p.rank().worker().poll();
        assertThat(early.finishedSending()).as("its lease comes with the next step").isEmpty();
        world.settle();
        assertThat(p.sent()).containsExactly("p1");
        world.elapse(Duration.ofMinutes(1));
        world.settle();
        assertThat(p.statistics().expiredRequests()).isZero();
        assertThat(p.scheduler().heldRequests()).isZero();
    }

    @Test
    void aPromptWithoutAFullBlockIsReadToo() {
        KvTransferParams params = p.prefill("p1", 1, new int[] {6}, 1);
        d.decode("d1", 1, params, new int[] {2});
        world.settle();
        assertThat(d.holds(new int[] {2}, 1)).isTrue();
        assertThat(p.sent()).containsExactly("p1");
    }

    @Test
    void closingGivesEverythingBack() {
        KvTransferParams params = p.prefill("p1", 8, new int[] {3, 1}, 1);
        d.rank().transport().faults().setReadDelay(Duration.ofSeconds(1));
        d.decode("d1", 8, params, new int[] {4, 5});
        for (int i = 0; i < 5; i++) {
            world.tick();
        }
        assertThat(d.rank().transport().counts()).isEqualTo(new ModelCounts(1, 2, 1, 1));
        d.rank().worker().close();
        d.rank().worker().close();
        assertThat(d.rank().transport().counts()).isEqualTo(ModelCounts.NONE);
        world.forget(d);
    }

    private void inject(String text) {
        inject("stranger", text);
    }

    private void inject(String agent, String text) {
        world.fabric()
                .inject(
                        p.rank().transport().agentName(),
                        new PeerMessage(agent, text.getBytes(UTF_8)));
    }

    private static boolean isAbsent(int block, int[] blocks, int first) {
        return Arrays.stream(blocks, first, blocks.length).noneMatch(each -> each == block);
    }

    private static int[] distinct(SplittableRandom random, int count) {
        return random.ints(0, ModelEngine.BLOCKS).distinct().limit(count).toArray();
    }
}
