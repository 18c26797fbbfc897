package dev.dormouse.transport.local;

import dev.dormouse.foreign.PollSet;
import dev.dormouse.foreign.SocketMessage;
import dev.dormouse.transport.TransportException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A peer that has connected to this agent, or a process that holds its memory without a connection.
 * Guarded by the owner's side.
 */
final class ReaderSession implements Watched {
    /** Where it stands. */
    enum State {
        /** It has not said what it wants. */
        HALF_MADE,
        /** It was refused, and may not know yet. */
        REFUSED,
        /** It was given memory, and has it. */
        HOLDING,
        /** It has given all memory back, and has nothing until it asks again. */
        STANDING_BY,
        /** Its connection has ended, and it did not say before that it has unmapped the memory. */
        ORPHANED,
        /** It has nothing, and is gone. */
        ENDED
    }

    /** So that whoever sends all the time does not hold everybody up. */
    private static final int MAX_FRAMES = 1024;

    private final OwnerSide owner;
    private final Connection connection;
    private final ReaderProcess process;
    private long deadlineNanos;
    private volatile State state = State.HALF_MADE;
    private String agentName = "unknown";
    private List<LocalRegistration> held = List.of();
    private Inbox.@Nullable Slot slot;
    private boolean revoked;

    ReaderSession(OwnerSide owner, Connection connection, ReaderProcess process) {
        this.owner = owner;
        this.connection = connection;
        this.process = process;
        deadlineNanos = owner.answerDeadlineNanos();
    }

    State state() {
        return state;
    }

    boolean isHolding(LocalRegistration registration) {
        return held.contains(registration);
    }

    /** Tells it to let go, once. */
    void revoke() {
        if (state == State.HOLDING && !revoked) {
            revoked = connection.send(List.of(new Frame.Revoke().encode())) == Connection.Sent.YES;
        }
    }

    /** Tells it that there is memory, if it stands by. It holds nothing before it asks for it. */
    void offer(List<Token> registrations) {
        if (state != State.STANDING_BY) {
            return;
        }
        switch (connection.send(List.of(new Frame.Offer(registrations).encode()))) {
            case YES -> {
                if (connection.isWaiting()) {
                    owner.wake();
                }
            }
            case FULL, CLOSED -> end(); // it loads over another one
        }
    }

    /** Serves what it has sent so far, and finds out whether it is gone. */
    void drain() {
        for (int i = 0; i < MAX_FRAMES && isServed(); i++) {
            switch (connection.receive()) {
                case SocketMessage.Received.Nothing() -> {
                    return;
                }
                case SocketMessage.Received.End() -> disconnected();
                case SocketMessage.Received.Message(byte[] bytes, int[] descriptors, boolean cut) ->
                        take(bytes, cut || descriptors.length > 0);
            }
        }
        if (state == State.ORPHANED && process.hasEnded()) {
            end();
        }
    }

    private boolean isServed() {
        return switch (state) {
            case HALF_MADE, HOLDING, STANDING_BY -> true;
            case REFUSED, ORPHANED, ENDED -> false;
        };
    }

    private void take(byte[] bytes, boolean damaged) {
        try {
            if (damaged) {
                throw new TransportException("frame refused: too long, or with descriptors");
            }
            Inbox.Slot inbox = slot;
            switch (Frame.decode(bytes)) {
                case Frame.Hello hello when state != State.HOLDING -> answer(hello);
                case Frame.Message part when inbox != null -> inbox.add(part);
                case Frame.Released() when state == State.HOLDING -> standBy();
                case Frame frame ->
                        throw new TransportException(
                                "frame refused: "
                                        + frame.getClass().getSimpleName()
                                        + " does not fit here");
            }
        } catch (TransportException e) {
            owner.reject(this, e);
            disconnected();
        }
    }

    private void answer(Frame.Hello hello) {
        agentName = hello.agentName();
        String refusal = owner.refusal(hello);
        if (refusal != null) {
            deadlineNanos = owner.answerDeadlineNanos();
            state = State.REFUSED;
            connection.sendLast(new Frame.Refusal(refusal).encode());
            owner.wake();
            if (connection.isClosed()) {
                end();
            }
            return;
        }
        slot = owner.inbox().new Slot(agentName);
        // Who is given descriptors may use them from that moment on. A process that had ended
        // before its number was looked up has left a connection that is not held any more.
        held = owner.select(hello.registrations());
        state = State.HOLDING;
        List<OwnerSide.Granted> parts = owner.grant(held);
        for (int i = 0; i < parts.size(); i++) {
            OwnerSide.Granted part = parts.get(i);
            if (!connection.isHeld() || !connection.sendNow(part.frame(), part.descriptors())) {
                if (i == 0) {
                    end();
                } else {
                    disconnected();
                }
                return;
            }
        }
    }

    private void standBy() {
        state = State.STANDING_BY;
        held = List.of();
        slot = null;
        revoked = false;
    }

    /** The connection is of no use any more; what it was given may still be mapped. */
    private void disconnected() {
        connection.close();
        if (state == State.HOLDING && !held.isEmpty() && !process.hasEnded()) {
            state = State.ORPHANED;
            owner.wake();
        } else {
            end();
        }
    }

    /** It holds nothing any more. */
    private void end() {
        if (state == State.ENDED) {
            return;
        }
        state = State.ENDED;
        held = List.of();
        connection.close();
        process.close();
        owner.ended(this);
    }

    /** Ends it with the agent. */
    void close() {
        end();
    }

    @Override
    public int descriptor() {
        return state == State.ORPHANED ? process.descriptor() : connection.descriptor();
    }

    @Override
    public int interest() {
        return state == State.ORPHANED ? PollSet.POLLIN : connection.interest();
    }

    @Override
    public boolean hasDeadline() {
        return state == State.HALF_MADE || state == State.REFUSED;
    }

    @Override
    public long deadlineNanos() {
        return deadlineNanos;
    }

    @Override
    public void ready(int events) {
        synchronized (owner) {
            connection.flush();
            if (state == State.REFUSED
                    && (connection.isClosed() || (events & PollSet.POLLHUP) != 0)) {
                end();
            } else {
                drain();
            }
        }
    }

    @Override
    public void expired() {
        synchronized (owner) {
            if (hasDeadline()) {
                end();
            }
        }
    }

    @Override
    public void abandon() {
        synchronized (owner) {
            if (state == State.ORPHANED) {
                return; // nobody will say when its process ends, so it counts as holding on
            }
            disconnected();
            if (state == State.ORPHANED) {
                owner.watchAgain(this);
            }
        }
    }

    @Override
    public String toString() {
        return "agent " + agentName + " (process " + process.number() + ")";
    }
}
