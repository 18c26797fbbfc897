package dev.dormouse.simulation;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Locale;

/** What happened: the last events to be read, and a hash of them all to be compared. */
final class EventLog {
    private static final int KEPT = 80;
    private static final long FNV_OFFSET = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;

    private final Clock clock;
    private final Deque<String> last = new ArrayDeque<>();
    private long hash = FNV_OFFSET;
    private long count;

    EventLog(Clock clock) {
        this.clock = clock;
    }

    void add(String event) {
        String line = String.format(Locale.ROOT, "%12.6f %s", clock.nanoTime() / 1e9, event);
        for (int i = 0; i < line.length(); i++) {
            hash = (hash ^ line.charAt(i)) * FNV_PRIME;
        }
        count++;
        last.addLast(line);
        if (last.size() > KEPT) {
            last.removeFirst();
        }
    }

    long hash() {
        return hash;
    }

    long count() {
        return count;
    }

    List<String> last() {
        return List.copyOf(last);
    }
}
