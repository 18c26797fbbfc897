package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** What waits for an agent's owner. */
class InboxTest {
    private static final byte[] LONGEST = new byte[Inbox.MAX_MESSAGE_BYTES];

    @Test
    void whatAllPeersSendIsBoundedHoweverOftenTheyBeginAnew() {
        Inbox inbox = new Inbox();
        int most = (int) (Inbox.MAX_ALL_WAITING_BYTES / LONGEST.length);
        for (int i = 0; i < most + 5; i++) {
            inbox.new Slot("again").add(new Frame.Message(true, LONGEST));
        }
        assertThat(inbox.take()).hasSize(most - 1); // each costs something besides
        assertThat(inbox.rejected()).isEqualTo(6);

        inbox.new Slot("again").add(new Frame.Message(true, LONGEST));
        assertThat(inbox.take()).as("there is room again").hasSize(1);
    }
}
