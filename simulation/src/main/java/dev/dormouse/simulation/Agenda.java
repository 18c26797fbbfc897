package dev.dormouse.simulation;

import java.time.Duration;
import java.util.Comparator;
import java.util.PriorityQueue;

/** What happens later: messages on their way, restarts. */
final class Agenda {
    private record Item(long dueNanos, long number, Runnable action) {}

    private final Clock clock;
    private final PriorityQueue<Item> items =
            new PriorityQueue<>(
                    Comparator.comparingLong(Item::dueNanos).thenComparingLong(Item::number));
    private long numbers;

    Agenda(Clock clock) {
        this.clock = clock;
    }

    void after(Duration delay, Runnable action) {
        items.add(new Item(clock.nanoTime() + delay.toNanos(), numbers++, action));
    }

    boolean isEmpty() {
        return items.isEmpty();
    }

    /** Does what is due first; false if nothing is due. */
    boolean runNext() {
        Item head = items.peek();
        if (head == null || head.dueNanos() > clock.nanoTime()) {
            return false;
        }
        items.remove();
        head.action().run();
        return true;
    }
}
