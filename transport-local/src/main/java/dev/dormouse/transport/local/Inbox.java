package dev.dormouse.transport.local;

import dev.dormouse.transport.PeerMessage;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.List;

/** Messages that have come and that the agent's owner has not taken yet. Safe for all threads. */
final class Inbox {
    /** Of one message; as much as NIXL's binding takes. */
    static final int MAX_MESSAGE_BYTES = 1 << 20;

    /** Of one peer's messages that wait; further ones are dropped. */
    static final long MAX_WAITING_BYTES = 16L << 20;

    /**
     * Of all peers' messages that wait: whoever stands by, or connects again, begins with none of
     * its own.
     */
    static final long MAX_ALL_WAITING_BYTES = 4 * MAX_WAITING_BYTES;

    /** What a message costs besides its bytes. */
    private static final int OVERHEAD_BYTES = 64;

    private record Arrived(Slot slot, PeerMessage message) {}

    private List<Arrived> arrived = new ArrayList<>();
    private long allWaitingBytes;
    private long rejected;

    /** Puts one peer's messages together. */
    final class Slot {
        private final String agentName;
        private final ByteArrayOutputStream partial = new ByteArrayOutputStream();
        private boolean tooLong;
        private long waitingBytes;

        Slot(String agentName) {
            this.agentName = agentName;
        }

        /** Takes a message's next part. */
        void add(Frame.Message part) {
            synchronized (Inbox.this) {
                tooLong |= partial.size() + part.part().length > MAX_MESSAGE_BYTES;
                if (!tooLong) {
                    partial.writeBytes(part.part());
                }
                if (part.last()) {
                    complete();
                }
            }
        }

        private void complete() {
            long bytes = (long) partial.size() + OVERHEAD_BYTES;
            if (tooLong
                    || waitingBytes + bytes > MAX_WAITING_BYTES
                    || allWaitingBytes + bytes > MAX_ALL_WAITING_BYTES) {
                rejected++;
            } else {
                waitingBytes += bytes;
                allWaitingBytes += bytes;
                arrived.add(new Arrived(this, new PeerMessage(agentName, partial.toByteArray())));
            }
            tooLong = false;
            partial.reset();
        }
    }

    /** Something came from somebody who may not send it. */
    synchronized void reject() {
        rejected++;
    }

    /** How many messages were dropped. */
    synchronized long rejected() {
        return rejected;
    }

    /** Takes all. */
    synchronized List<PeerMessage> take() {
        List<Arrived> taken = arrived;
        arrived = new ArrayList<>();
        allWaitingBytes = 0;
        for (Arrived each : taken) {
            each.slot().waitingBytes -= each.message().bytes().length + OVERHEAD_BYTES;
        }
        return taken.stream().map(Arrived::message).toList();
    }
}
