package dev.dormouse.testkit;

import dev.dormouse.transport.PeerMessage;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;

/** The messages on their way to one {@link ModelTransport}; its fabric's monitor guards them. */
final class ModelInbox {
    /** As NIXL's agents have it. */
    private static final int MAX_MESSAGE_BYTES = 1 << 20;

    private record Arrival(long dueNanos, PeerMessage message) {}

    private final ModelFaults faults;
    private final Deque<Arrival> arrivals = new ArrayDeque<>();
    private long rejected;

    ModelInbox(ModelFaults faults) {
        this.faults = faults;
    }

    void deliver(PeerMessage message, long nowNanos) {
        if (message.bytes().length > MAX_MESSAGE_BYTES) {
            rejected++;
        } else if (!faults.losesNext()) {
            arrivals.add(new Arrival(nowNanos + faults.messageDelayNanos(), message));
        }
    }

    /** Takes what has arrived, in the order that {@link ModelFaults#setNewestFirst} says. */
    List<PeerMessage> take(long nowNanos) {
        return faults.isNewestFirst() ? newestFirst(nowNanos) : inOrder(nowNanos);
    }

    long rejected() {
        return rejected;
    }

    void clear() {
        arrivals.clear();
    }

    private List<PeerMessage> inOrder(long nowNanos) {
        List<PeerMessage> due = new ArrayList<>();
        for (Arrival head = arrivals.peek();
                head != null && nowNanos - head.dueNanos() >= 0;
                head = arrivals.peek()) {
            due.add(arrivals.remove().message());
        }
        return due;
    }

    private List<PeerMessage> newestFirst(long nowNanos) {
        List<PeerMessage> due = new ArrayList<>();
        for (Iterator<Arrival> each = arrivals.descendingIterator(); each.hasNext(); ) {
            Arrival arrival = each.next();
            if (nowNanos - arrival.dueNanos() >= 0) {
                each.remove();
                due.add(arrival.message());
            }
        }
        return due;
    }
}
