package dev.dormouse.transport.local;

import dev.dormouse.foreign.PollSet;
import dev.dormouse.foreign.SocketMessage;
import dev.dormouse.transport.MemoryWithdrawnException;
import dev.dormouse.transport.TransportException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A connection to a peer that gives this agent its memory. The socket loop takes the answers and
 * maps what they give, so that a {@link #load} finds it; nobody reads from it before. When the
 * memory is given back after it was loaded, the connection stands by for what the peer offers next:
 * that is mapped while its user still shakes hands. What is mapped and not loaded in time is given
 * back, and the connection with it.
 */
final class PeerLink implements Watched {
    private static final System.Logger LOG = System.getLogger("dormouse.transport.local");

    /** So that whoever sends all the time does not hold everybody up. */
    private static final int MAX_FRAMES = 64;

    private static final long NANOS_PER_MILLI = 1_000_000;
    private static final String DISCONNECTED = "disconnected";
    private static final String REFUSED =
            "it ended the connection: it does not allow this process's user, has too many peers,"
                    + " or is being closed";
    private static final String REVOKED = "revoked by its owner";

    private enum State {
        /** It holds nothing. */
        STANDING_BY,
        /** It has asked for memory, and may hold descriptors. */
        ASKING,
        /** The memory is mapped, for whoever loads it. */
        MAPPED,
        /** The memory is mapped, and has a user. */
        LOADED,
        /** It holds nothing, unless the owner was not told so, and is gone. */
        ENDED
    }

    private final ReaderSide reader;
    private final LocalMetadata owner;
    private final Connection connection;
    private volatile State state = State.STANDING_BY;

    /** What was asked for last, and when. */
    private List<Token> registrations = List.of();

    private long askedNanos;
    private volatile long unusedUntilNanos;
    private Answer answer;
    private @Nullable PeerMapping mapping;
    private TransportException failure;

    /**
     * Written with the connection's lock: what it sends is sent before the memory is given back.
     */
    private @Nullable LocalPeer user;

    /**
     * Asks for nothing yet.
     *
     * @param owner who is there: its name, and which start of it
     */
    PeerLink(ReaderSide reader, LocalMetadata owner, Connection connection) {
        this.reader = reader;
        this.owner = owner;
        this.connection = connection;
        answer = new Answer(owner);
        failure = ReaderSide.failure(owner, REFUSED);
    }

    String agentName() {
        return owner.agentName();
    }

    Connection connection() {
        return connection;
    }

    /**
     * Asks for what the metadata name, unless it has. Whoever does not insist leaves what was asked
     * for otherwise.
     *
     * @return false if it has ended: another connection is needed
     */
    synchronized boolean ask(LocalMetadata wanted, boolean insists) {
        boolean sameStart = wanted.incarnation().equals(owner.incarnation());
        return switch (state) {
            case STANDING_BY -> {
                if (sameStart) {
                    ask(wanted.registrations());
                } else {
                    end("another start of it is asked for");
                }
                yield state != State.ENDED;
            }
            case ASKING, MAPPED -> {
                if (insists && !(sameStart && registrations.equals(wanted.registrations()))) {
                    end("other memory of it is asked for");
                }
                yield state != State.ENDED;
            }
            case LOADED -> true;
            case ENDED -> false;
        };
    }

    private void ask(List<Token> wanted) {
        registrations = List.copyOf(wanted);
        Frame.Hello hello = new Frame.Hello(owner.incarnation(), reader.agentName(), registrations);
        if (connection.send(List.of(hello.encode())) != Connection.Sent.YES) {
            end(REFUSED);
            return;
        }
        askedNanos = System.nanoTime();
        unusedUntilNanos = askedNanos + reader.limits().unused().toNanos();
        answer = new Answer(owner);
        state = State.ASKING;
        wakeIfWaiting();
    }

    /** Waits until the memory is mapped or is not given, at most as long as a load may take. */
    synchronized void awaitAnswer() {
        boolean interrupted = false;
        long leftNanos = leftNanos();
        while (state == State.ASKING && leftNanos > 0) {
            try {
                wait(Math.ceilDiv(leftNanos, NANOS_PER_MILLI));
            } catch (InterruptedException e) {
                interrupted = true;
            }
            leftNanos = leftNanos();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private long leftNanos() {
        return askedNanos + reader.limits().load().toNanos() - System.nanoTime();
    }

    /**
     * Gives the memory to a user, once it is mapped.
     *
     * @throws TransportException if it is not given, or not in time; it has ended then
     */
    synchronized LocalPeer load(LocalMetadata wanted) {
        awaitAnswer();
        PeerMapping mapped = mapping;
        if (state == State.MAPPED
                && mapped != null
                && registrations.equals(wanted.registrations())) {
            LocalPeer loader = new LocalPeer(owner.agentName(), this, mapped);
            state = State.LOADED;
            become(loader);
            return loader;
        }
        end(
                state == State.ASKING
                        ? "no answer came within %d ms: its process may be stopped"
                                .formatted(reader.limits().load().toMillis())
                        : "other memory of it was asked for meanwhile");
        throw failure;
    }

    private void become(@Nullable LocalPeer next) {
        synchronized (connection) {
            user = next;
        }
    }

    /** Sends all of the frames or none, if the memory is loaded for that user. */
    Connection.Sent send(LocalPeer sender, List<byte[]> frames) {
        Connection.Sent sent;
        synchronized (connection) {
            sent = sender.equals(user) ? connection.send(frames) : Connection.Sent.CLOSED;
        }
        if (sent == Connection.Sent.CLOSED) {
            reader.loop().wake(); // if the socket has failed, the loop does not hear it any more
        } else {
            wakeIfWaiting();
        }
        return sent;
    }

    private void wakeIfWaiting() {
        if (connection.isWaiting()) {
            reader.loop().wake();
        }
    }

    /** Gives the memory back, if it is loaded for that user; the connection stands by. */
    synchronized void drop(LocalPeer leaving) {
        if (leaving.equals(user)) {
            giveBack();
        }
    }

    private void giveBack() {
        become(null);
        if (!unmap()) {
            end("its memory could not be unmapped");
            return;
        }
        state = State.STANDING_BY;
        connection.sendAnyhow(new Frame.Released().encode());
        if (connection.isClosed()) {
            end(DISCONNECTED);
        } else {
            wakeIfWaiting();
        }
    }

    /** If it stays mapped, the owner never hears that it is not. */
    private boolean unmap() {
        PeerMapping ending = mapping;
        mapping = null;
        try {
            if (ending != null) {
                ending.unmap();
            }
            return true;
        } catch (RuntimeException e) { // whatever it is, they may be mapped
            LOG.log(
                    System.Logger.Level.ERROR,
                    "a peer's pages stay mapped until this process ends: peer=" + agentName(),
                    e);
            connection.close();
            return false;
        }
    }

    private void end(String why) {
        end(why, ReaderSide.failure(owner, why));
    }

    /**
     * Gives up what it holds, tells the owner so, and ends the connection. Idempotent.
     *
     * @param reason for the user, of whom it is taken
     * @param why for whoever wants to load
     */
    private void end(String reason, TransportException why) {
        State before = state;
        if (before == State.ENDED) {
            return;
        }
        failure = why;
        state = State.ENDED;
        LocalPeer using = user;
        if (using != null) {
            using.end(LocalPeer.State.LOST, reason);
            become(null);
        }
        answer.close();
        if (!unmap() || before == State.STANDING_BY || PeerMapping.isLeftBehind(why)) {
            connection.close();
        } else {
            connection.sendLast(new Frame.Released().encode());
        }
        notifyAll();
        reader.ended(this);
        if (connection.isClosed()) {
            reader.loop().forget(this);
        } else {
            reader.loop().wake();
        }
    }

    /** Ends it with the agent. */
    synchronized void close() {
        end("lost with this agent");
    }

    @Override
    public int descriptor() {
        return connection.descriptor();
    }

    @Override
    public int interest() {
        return connection.interest();
    }

    @Override
    public boolean hasDeadline() {
        return switch (state) {
            case ASKING, MAPPED -> true;
            case STANDING_BY, LOADED -> connection.isClosed();
            case ENDED -> false;
        };
    }

    @Override
    public long deadlineNanos() {
        return connection.isClosed() ? System.nanoTime() : unusedUntilNanos;
    }

    @Override
    public synchronized void expired() {
        if (connection.isClosed()) {
            end(DISCONNECTED);
        } else if (hasDeadline() && unusedUntilNanos - System.nanoTime() <= 0) {
            end("it was given long before and not loaded");
        }
    }

    @Override
    public synchronized void ready(int events) {
        connection.flush();
        for (int i = 0; i < MAX_FRAMES && state != State.ENDED; i++) {
            switch (receive()) {
                case SocketMessage.Received.Nothing() -> {
                    return;
                }
                case SocketMessage.Received.End() ->
                        end(state == State.LOADED ? DISCONNECTED : REFUSED);
                case SocketMessage.Received.Message message -> take(message);
            }
        }
        if (state == State.ENDED) {
            if ((events & PollSet.POLLHUP) != 0) {
                connection.close();
            }
            if (connection.isClosed()) {
                reader.loop().forget(this);
            }
        }
    }

    private SocketMessage.Received receive() {
        return state == State.ASKING ? connection.receiveGranted() : connection.receive();
    }

    private void take(SocketMessage.Received.Message message) {
        try {
            if (state == State.ASKING) {
                if (answer.add(message)) {
                    map();
                }
                return;
            }
            if (message.cut() || message.descriptors().length > 0) {
                throw new TransportException("it sent what does not belong here");
            }
            switch (Frame.decode(message.bytes())) {
                case Frame.Revoke() -> revoked();
                case Frame.Offer(List<Token> offered) when state == State.STANDING_BY ->
                        ask(offered);
                case Frame _ -> throw new TransportException("it sent what does not belong here");
            }
        } catch (TransportException e) {
            end(DISCONNECTED + ": " + e.getMessage(), e);
        }
    }

    private void map() {
        PeerMapping mapped = answer.map(reader.copier());
        mapping = mapped;
        answer.close();
        unusedUntilNanos = System.nanoTime() + reader.limits().unused().toNanos();
        state = State.MAPPED;
        notifyAll();
        reader.mapped(mapped);
    }

    private void revoked() {
        LocalPeer using = user;
        if (using != null) {
            using.end(LocalPeer.State.REVOKED, REVOKED);
            giveBack();
        } else if (state == State.MAPPED) {
            end(
                    REVOKED,
                    new MemoryWithdrawnException(
                            "load peer %s failed: %s".formatted(agentName(), REVOKED)));
        }
    }

    /** What an answer gave may be mapped in part: the owner is not told that it is not. */
    @Override
    public synchronized void abandon() {
        if (state == State.ASKING) {
            connection.close();
        }
        end("disconnected after an error here");
        connection.close();
    }
}
