package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.Socket;
import org.junit.jupiter.api.Test;

/** Whose connection is given up when there are too many, or when its time is over. */
final class ConnectionTableTest {
    private static final String GREEDY = "192.0.2.1";
    private static final String MODEST = "192.0.2.2";
    private static final long NEVER = Long.MAX_VALUE / 2;

    private final ConnectionTable table = new ConnectionTable(4);

    /** A socket from somewhere that was never connected. */
    private static final class From extends Socket {
        private final String host;

        private From(String host) {
            this.host = host;
        }

        @Override
        public InetAddress getInetAddress() {
            return InetAddress.ofLiteral(host);
        }
    }

    @Test
    void upToTheLimitNobodyIsClosed() {
        ConnectionTable.Entry first = add(GREEDY);
        for (int i = 1; i < 4; i++) {
            add(GREEDY);
        }
        assertThat(table.size()).isEqualTo(4);
        assertThat(isClosed(first)).isFalse();
        ConnectionTable.Entry newest = add(GREEDY);
        assertThat(table.size()).isEqualTo(4);
        assertThat(isClosed(first)).isTrue();
        assertThat(isClosed(newest)).isFalse();
    }

    @Test
    void theAddressWithTheMostConnectionsGivesOneUp() {
        ConnectionTable.Entry oldest = add(MODEST);
        ConnectionTable.Entry victim = add(GREEDY);
        add(GREEDY);
        add(GREEDY);
        add(MODEST);
        assertThat(isClosed(oldest)).isFalse();
        assertThat(isClosed(victim)).isTrue();
    }

    @Test
    void whoHasNotGreetedGoesBeforeWhoHas() {
        ConnectionTable.Entry greeted = add(GREEDY);
        greeted.greeted();
        ConnectionTable.Entry silent = add(GREEDY);
        ConnectionTable.Entry other = add(GREEDY);
        other.greeted();
        add(GREEDY).greeted();
        add(GREEDY).greeted();
        assertThat(isClosed(silent)).isTrue();
        add(GREEDY);
        assertThat(isClosed(greeted)).as("all have greeted: the oldest").isTrue();
        assertThat(isClosed(other)).isFalse();
    }

    @Test
    void aConnectionIsClosedAtItsDeadlineAndStaysUntilItsUserHasGone() {
        ConnectionTable.Entry soon = table.add(new From(MODEST), 100);
        ConnectionTable.Entry moved = table.add(new From(MODEST), 100);
        moved.setDeadline(200);
        table.closeOverdue(99);
        assertThat(isClosed(soon)).isFalse();
        table.closeOverdue(100);
        assertThat(isClosed(soon)).isTrue();
        assertThat(isClosed(moved)).isFalse();
        assertThat(table.size()).isEqualTo(2);
        table.remove(soon);
        assertThat(table.size()).isEqualTo(1);
    }

    @Test
    void aClosedTableHasNoOpenConnectionAndTakesNone() {
        ConnectionTable.Entry before = add(MODEST);
        table.close();
        assertThat(isClosed(before)).isTrue();
        assertThat(isClosed(add(MODEST))).isTrue();
    }

    private ConnectionTable.Entry add(String host) {
        return table.add(new From(host), NEVER);
    }

    private static boolean isClosed(ConnectionTable.Entry entry) {
        return entry.socket().isClosed();
    }
}
