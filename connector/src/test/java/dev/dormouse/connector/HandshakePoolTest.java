package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.testkit.Await;
import java.net.InetAddress;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Peers that do not answer, and names that do not resolve, hold up nobody but themselves. */
final class HandshakePoolTest {
    private final HandshakePool pool = new HandshakePool();
    private final CountDownLatch over = new CountDownLatch(1);

    @AfterEach
    void close() {
        over.countDown();
        pool.close();
    }

    @Test
    void silentPeersDoNotDelayOthers() throws InterruptedException {
        for (int port = 1; port <= 200; port++) {
            pool.execute(address(port), this::hang);
        }
        CountDownLatch done = new CountDownLatch(1);
        pool.execute(address(1000), done::countDown);
        assertThat(done.await(20, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void oneAddressIsAskedOnceAtATimeInOrder() throws InterruptedException {
        List<Integer> order = Collections.synchronizedList(new ArrayList<>());
        AtomicInteger running = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(10);
        for (int i = 0; i < 10; i++) {
            int number = i;
            pool.execute(
                    address(1),
                    () -> {
                        order.add(running.incrementAndGet() == 1 ? number : -1);
                        for (int spin = 0; spin < 10_000; spin++) {
                            Thread.onSpinWait();
                        }
                        running.decrementAndGet();
                        done.countDown();
                    });
        }
        assertThat(done.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(order).containsExactly(0, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    }

    @Test
    void boundsHoldForAnAddressAndInAll() {
        for (int i = 0; i < HandshakePool.MAX_PENDING_PER_ADDRESS; i++) {
            pool.execute(address(1), this::hang);
        }
        assertThatExceptionOfType(RejectedExecutionException.class)
                .isThrownBy(() -> pool.execute(address(1), this::hang))
                .withMessageContaining("16 of them with this address");
        for (int i = HandshakePool.MAX_PENDING_PER_ADDRESS; i < HandshakePool.MAX_PENDING; i++) {
            pool.execute(address(1 + i), this::hang);
        }
        assertThatExceptionOfType(RejectedExecutionException.class)
                .isThrownBy(() -> pool.execute(address(5000), this::hang));
        over.countDown();
        Await.until("room again", () -> !isFull());
    }

    @Test
    void aNameThatDoesNotResolveEndsAtTheLimitAndDelaysNoOther() throws Exception {
        InetAddress here = InetAddress.getLoopbackAddress();
        AtomicInteger lookups = new AtomicInteger();
        try (NameResolver resolver =
                new NameResolver(
                        host -> {
                            lookups.incrementAndGet();
                            if (host.startsWith("slow")) {
                                hang();
                            }
                            return new InetAddress[] {here};
                        })) {
            for (int i = 0; i < 20; i++) {
                assertThatExceptionOfType(SocketTimeoutException.class)
                        .isThrownBy(() -> resolver.resolve("slow", Duration.ofMillis(5)))
                        .withMessageContaining("slow");
            }
            assertThat(lookups).as("one look-up of a name at a time").hasValue(1);
            assertThat(resolver.resolve("fast", Duration.ofSeconds(20))).containsExactly(here);
            assertThat(resolver.resolve("127.0.0.9", Duration.ofSeconds(20)))
                    .containsExactly(InetAddress.ofLiteral("127.0.0.9"));
            assertThat(lookups).as("an address is not looked up").hasValue(2);
        }
    }

    @Test
    void aHandshakeWhoseThreadIsStuckFailsAtItsLimit() {
        ModelPair pair = new ModelPair();
        KvTransferParams params = pair.prefill(1);
        pair.world().handshakes().setStuck(true);
        pair.d().decode("d1", ModelPair.TOKENS, params, ModelPair.D_BLOCKS);
        pair.world().tick();
        assertThat(pair.d().failed()).isEmpty();
        pair.world().elapse(Duration.ofSeconds(5));
        pair.world().tick();
        assertThat(pair.d().failed()).containsExactly("d1");
        pair.world().handshakes().setStuck(false);
        pair.world().settle();
        assertThat(pair.world().sideChannels().fetches())
                .as("nobody is asked when the time is over")
                .isZero();
        pair.assertTransfers(2);
    }

    private boolean isFull() {
        try {
            pool.execute(address(1), () -> {});
            return false;
        } catch (RejectedExecutionException e) {
            return true;
        }
    }

    private void hang() {
        try {
            boolean _ = over.await(60, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static SideChannelAddress address(int port) {
        return new SideChannelAddress("192.0.2.1", port);
    }
}
