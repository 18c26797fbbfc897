package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/** Who counts as a reader of the payloads that an engine gives away. */
final class SideChannelDeskTest {
    private static final RankId RANK = new RankId(0, 0);
    private static final byte[] PAYLOAD = new HandshakePayload("h", new byte[8], 3, "i").encode();

    private final SideChannelDesk desk =
            new SideChannelDesk("P", "i", () -> 0, new HoldBook("i", () -> 0));

    @Test
    void aSubscriptionIsTakenOnlyToWhatIsServed() {
        assertThat(subscribe(desk.connected(), 1, 0)).as("nothing is served").isFalse();
        desk.serve(3, Map.of(RANK, PAYLOAD));
        assertThat(subscribe(desk.connected(), 1, 2)).as("an older epoch").isFalse();
        assertThat(desk.readers()).isEmpty();
        assertThat(subscribe(desk.connected(), 1, 3)).isTrue();
        assertThat(desk.readers()).containsExactly(reader(1));
        desk.withdraw();
        assertThat(subscribe(desk.connected(), 2, 3)).as("withdrawn").isFalse();
        assertThat(desk.readers()).as("who was given them stays known").hasSize(1);
    }

    @Test
    void whoTellsWhereItIsIsNotAnonymousAnyMore() {
        desk.serve(3, Map.of(RANK, PAYLOAD));
        SideChannelDesk.Session session = desk.connected();
        ask(session, HandshakeRequest.encode(RANK));
        ask(session, HandshakeRequest.encode(RANK));
        assertThat(desk.anonymousReaders()).isEqualTo(1);
        assertThat(subscribe(session, 1, 3)).isTrue();
        assertThat(subscribe(session, 1, 3)).isTrue();
        assertThat(desk.anonymousReaders()).isZero();
        assertThat(desk.readers()).containsExactly(reader(1));
    }

    @Test
    void forgottenReadersAreNotKnownInAnyWay() {
        desk.serve(3, Map.of(RANK, PAYLOAD));
        ask(desk.connected(), HandshakeRequest.encode(RANK));
        subscribe(desk.connected(), 1, 3);
        desk.forgetReaders();
        assertThat(desk.readers()).isEmpty();
        assertThat(desk.anonymousReaders()).isZero();
    }

    @Test
    void whoComesWhenTheListIsFullStaysAnonymousAndWhoIsOnItDoesNot() {
        desk.serve(3, Map.of(RANK, PAYLOAD));
        for (int port = 1; port <= SideChannelDesk.MAX_READERS; port++) {
            subscribe(desk.connected(), port, 3);
        }
        assertThat(desk.readers()).hasSize(SideChannelDesk.MAX_READERS);
        SideChannelDesk.Session late = desk.connected();
        ask(late, HandshakeRequest.encode(RANK));
        assertThat(subscribe(late, 2_000, 3)).isTrue();
        assertThat(desk.readers()).doesNotContain(reader(2_000));
        assertThat(desk.anonymousReaders()).isEqualTo(1);
        SideChannelDesk.Session known = desk.connected();
        ask(known, HandshakeRequest.encode(RANK));
        assertThat(subscribe(known, 7, 3)).isTrue();
        assertThat(desk.anonymousReaders()).isEqualTo(1);
    }

    private static boolean subscribe(SideChannelDesk.Session session, int port, long epoch) {
        return Subscription.isAccepted(
                ask(session, new Subscription(reader(port), epoch).encode()));
    }

    private static byte[] ask(SideChannelDesk.Session session, byte[] question) {
        return Objects.requireNonNull(session.answer(question)).body();
    }

    private static Subscription.Reader reader(int port) {
        return new Subscription.Reader("D", "di", new SideChannelAddress("127.0.0.1", port));
    }
}
