package dev.dormouse.cli.serve;

import static dev.dormouse.cli.serve.NixlEngine.Mode.PULL;
import static dev.dormouse.cli.serve.NixlEngine.Mode.PUSH;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.connector.ReleaseTimeoutException;
import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * A decode engine with several connectors over the real library: each has agents of its own, and
 * all register the same memory, which goes and comes under them.
 */
final class MultiOverNixlTest {
    private int prompts;

    @BeforeAll
    static void requireLibrary() {
        Natives.nixlDirectory();
    }

    @Test
    void promptsOfBothModesComeBetweenSleepsOfEachEngineWithOneHandshakePerWake() {
        try (NixlEngine pulled = new NixlEngine("P", Map.of(), PULL);
                NixlEngine pushing = new NixlEngine("Q", Map.of(), PUSH);
                NixlEngine d = new NixlEngine("D", Map.of(), PULL, PUSH)) {
            List<NixlEngine> holders = List.of(pulled, pushing);
            requirePrompts(d, holders);
            requirePrompts(d, holders);
            assertThat(handshakes(d)).containsExactly(1L, 1L);
            d.sleepAndWake();
            requirePrompts(d, holders);
            requirePrompts(d, holders);
            assertThat(handshakes(d)).containsExactly(2L, 2L);
            pushing.sleepAndWake();
            requirePrompts(d, holders);
            assertThat(handshakes(d)).containsExactly(2L, 3L);
            pulled.sleepAndWake();
            d.sleepAndWake();
            requirePrompts(d, holders);
            assertThat(handshakes(d)).containsExactly(3L, 4L);
            assertThat(d.statistics())
                    .extracting(TransferStatistics::registrations)
                    .as("each registers at the start and with each wake")
                    .containsExactly(3L, 3L);
        }
    }

    @Test
    void ofTwoThatReadTheFirstReadsBetweenSleepsAndTheOtherKnowsNobody() {
        try (NixlEngine p = new NixlEngine("P", Map.of(), PULL);
                NixlEngine d = new NixlEngine("D", Map.of(), PULL, PULL)) {
            for (int round = 1; round <= 3; round++) {
                requirePrompts(d, List.of(p));
                assertThat(handshakes(d)).containsExactly((long) round, 0L);
                d.sleepAndWake();
            }
            assertThat(d.statistics().get(1).failedNotifications()).isZero();
        }
    }

    @Test
    void ifTheSecondCannotReleaseTheFirstIsRestoredAndBothServeOn() throws IOException {
        try (NixlEngine pulled = new NixlEngine("P", Map.of(), PULL);
                NixlEngine pushing = new NixlEngine("Q", Map.of(), PUSH);
                NixlEngine d = new NixlEngine("D", Map.of(), PUSH, PULL)) {
            List<NixlEngine> holders = List.of(pushing, pulled);
            requirePrompts(d, holders);
            try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                ObjectNode elsewhere = pulled.prefill("lost", 1).toJson();
                elsewhere.put("remote_port", silent.getLocalPort());
                d.decode("asks in vain", KvTransferParams.of(elsewhere));
                d.step();
                assertThatExceptionOfType(ReleaseTimeoutException.class)
                        .isThrownBy(() -> d.letGo(Duration.ofMillis(50)))
                        .withMessageContaining("still pending");
            }
            assertThat(d.isReleased()).isFalse();
            assertThat(d.statistics())
                    .extracting(TransferStatistics::registrations)
                    .containsExactly(1L, 1L);
            d.comeBack();
            Await.until(
                    "the request fails",
                    NixlEngine.LIMIT,
                    () -> {
                        d.step();
                        return d.failed().contains("asks in vain");
                    },
                    d::received);
            requirePrompts(d, holders);
            assertThat(d.statistics())
                    .extracting(TransferStatistics::registrations)
                    .as("the one that had released registered again")
                    .containsExactly(2L, 1L);
            d.sleepAndWake();
            requirePrompts(d, holders);
        }
    }

    /** A prompt of each holder, which must come as it was written, and whose blocks are let go. */
    private void requirePrompts(NixlEngine d, List<NixlEngine> holders) {
        for (NixlEngine holder : holders) {
            int content = prompts++;
            d.decode("d" + content, holder.prefill("p" + content, content));
            Await.until(
                    "prompt " + content,
                    NixlEngine.LIMIT,
                    () -> {
                        holder.step();
                        d.step();
                        return d.received().contains("d" + content)
                                && holder.sent().contains("p" + content);
                    },
                    () -> d.received() + " " + holder.sent());
            assertThat(d.failed()).doesNotContain("d" + content);
            assertThat(d.holds(content)).isTrue();
        }
    }

    private static List<Long> handshakes(NixlEngine engine) {
        return engine.statistics().stream().map(TransferStatistics::handshakes).toList();
    }
}
