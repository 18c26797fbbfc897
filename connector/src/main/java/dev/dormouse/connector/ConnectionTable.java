package dev.dormouse.connector;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A listener's open connections: bounded, and each with a deadline at which it is closed whatever
 * it is doing, since a blocked write has no timeout of its own.
 *
 * <p>When there are too many, the address with the most gives one up: of those, one that has not
 * greeted before one that has, and the oldest first. So a flood from one address costs the others
 * nothing. Shared by all threads.
 */
final class ConnectionTable implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    /** One connection. */
    static final class Entry {
        private final Socket socket;
        private final InetAddress from;
        private volatile boolean greeted;
        private volatile long deadlineNanos;

        private Entry(Socket socket, long deadlineNanos) {
            this.socket = socket;
            this.from = socket.getInetAddress();
            this.deadlineNanos = deadlineNanos;
        }

        Socket socket() {
            return socket;
        }

        void greeted() {
            greeted = true;
        }

        /** It is closed at this {@link System#nanoTime}, unless the deadline is moved before. */
        void setDeadline(long nanoTime) {
            deadlineNanos = nanoTime;
        }
    }

    private final int maxConnections;
    private final Set<Entry> entries = new LinkedHashSet<>();
    private boolean closed;

    ConnectionTable(int maxConnections) {
        this.maxConnections = maxConnections;
    }

    /** Takes a connection, which the table may close at any time. */
    synchronized Entry add(Socket socket, long deadlineNanos) {
        if (entries.size() >= maxConnections) {
            Entry victim = victim();
            entries.remove(victim);
            close(victim);
        }
        Entry entry = new Entry(socket, deadlineNanos);
        entries.add(entry);
        if (closed) {
            close(entry);
        }
        return entry;
    }

    synchronized void remove(Entry entry) {
        entries.remove(entry);
    }

    synchronized int size() {
        return entries.size();
    }

    /** Closes what is past its deadline; whoever uses it notices, and removes it. */
    synchronized void closeOverdue(long nowNanos) {
        for (Entry entry : entries) {
            if (nowNanos - entry.deadlineNanos >= 0) {
                close(entry);
            }
        }
    }

    @Override
    public synchronized void close() {
        closed = true;
        entries.forEach(ConnectionTable::close);
    }

    private Entry victim() {
        Map<InetAddress, Integer> counts = new HashMap<>();
        entries.forEach(entry -> counts.merge(entry.from, 1, Integer::sum));
        int most = counts.values().stream().max(Comparator.naturalOrder()).orElseThrow();
        List<Entry> greediest =
                entries.stream()
                        .filter(entry -> counts.getOrDefault(entry.from, 0) == most)
                        .toList();
        return greediest.stream()
                .filter(entry -> !entry.greeted)
                .findFirst()
                .orElseGet(greediest::getFirst);
    }

    private static void close(Entry entry) {
        try {
            entry.socket.close();
        } catch (IOException e) {
            LOG.log(System.Logger.Level.DEBUG, "side channel: close failed", e);
        }
    }
}
