package dev.dormouse.simulation;

import dev.dormouse.connector.HandshakeThreads;
import dev.dormouse.connector.SideChannel;
import dev.dormouse.connector.SideChannelAddress;
import dev.dormouse.connector.SideChannelDesk;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.random.RandomGenerator;

/**
 * All side channels without sockets, and the threads that wait for them without threads: a
 * conversation runs when the scheduler picks it, and other things happen between its questions.
 */
final class Network {
    /** A conversation of one rank with one address, behind those that began before it. */
    private static final class Line {
        private final EngineProcess process;
        private final Deque<Runnable> tasks = new ArrayDeque<>();
        private boolean running;

        private Line(EngineProcess process) {
            this.process = process;
        }
    }

    private final Clock clock;
    private final RandomGenerator random;
    private final Runnable meanwhile;
    private final Map<SideChannelAddress, SideChannelDesk> desks = new HashMap<>();
    private final Map<EngineProcess, List<Map<SideChannelAddress, Line>>> lines =
            new LinkedHashMap<>();
    private int refusals;
    private boolean slow;

    /**
     * No side channels yet.
     *
     * @param meanwhile lets other things happen
     */
    Network(Clock clock, RandomGenerator random, Runnable meanwhile) {
        this.clock = clock;
        this.random = random;
        this.meanwhile = meanwhile;
    }

    /** The next {@code times} connections are refused. */
    void refuse(int times) {
        refusals = times;
    }

    /** Whether peers answer so slowly that a conversation may take too long. */
    void setSlow(boolean value) {
        slow = value;
    }

    SideChannel open(SideChannelAddress address, SideChannelDesk desk) {
        if (desks.putIfAbsent(address, desk) != null) {
            throw new Violation("two engines listen on " + address);
        }
        return new SideChannel() {
            @Override
            public int port() {
                return address.port();
            }

            @Override
            public void close() {
                desks.remove(address, desk);
            }
        };
    }

    /** Another pool of handshake threads of a process. */
    HandshakeThreads threads(EngineProcess process) {
        Map<SideChannelAddress, Line> pool = new LinkedHashMap<>();
        lines.computeIfAbsent(process, _ -> new ArrayList<>()).add(pool);
        return (address, task) ->
                pool.computeIfAbsent(address, _ -> new Line(process)).tasks.addLast(task);
    }

    /** A process has ended: nobody listens on its address, and its threads are gone. */
    void forget(EngineProcess process) {
        lines.remove(process);
        desks.remove(process.spec().address());
    }

    int pending() {
        int count = 0;
        for (List<Map<SideChannelAddress, Line>> pools : lines.values()) {
            for (Map<SideChannelAddress, Line> pool : pools) {
                for (Line line : pool.values()) {
                    count += line.tasks.size();
                }
            }
        }
        return count;
    }

    /** Runs one conversation to its end; false if none waits. */
    boolean runNext() {
        List<Line> ready = new ArrayList<>();
        for (List<Map<SideChannelAddress, Line>> pools : lines.values()) {
            for (Map<SideChannelAddress, Line> pool : pools) {
                for (Line line : pool.values()) {
                    if (!line.running && !line.tasks.isEmpty()) {
                        ready.add(line);
                    }
                }
            }
        }
        if (ready.isEmpty()) {
            return false;
        }
        Line line = ready.get(random.nextInt(ready.size()));
        line.running = true;
        line.process.converse(1);
        try {
            line.tasks.removeFirst().run();
        } finally {
            line.process.converse(-1);
            line.running = false;
        }
        return true;
    }

    SideChannel.Conversation dial(SideChannelAddress address, Duration limit) throws IOException {
        meanwhile.run();
        SideChannelDesk desk = desks.get(address);
        if (desk == null || refusals > 0) {
            refusals = Math.max(0, refusals - 1);
            throw new ConnectException("connection refused");
        }
        long deadlineNanos = clock.nanoTime() + limit.toNanos();
        SideChannelDesk.Session session = desk.connected();
        return new SideChannel.Conversation() {
            @Override
            public SideChannel.Answer ask(byte[] question) throws IOException {
                travel();
                SideChannel.Answer answer = session.answer(question);
                travel();
                if (answer == null || clock.nanoTime() - deadlineNanos >= 0) {
                    throw new SocketTimeoutException("no answer within " + limit);
                }
                return answer;
            }

            private void travel() throws IOException {
                if (slow) {
                    clock.advance(Duration.ofMillis(random.nextInt(3_000)));
                }
                meanwhile.run();
                if (desks.get(address) != desk) {
                    throw new SocketException("connection reset");
                }
            }

            @Override
            public void close() {}
        };
    }
}
