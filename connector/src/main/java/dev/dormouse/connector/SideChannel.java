package dev.dormouse.connector;

import java.io.IOException;
import java.time.Duration;

/**
 * The answering end of an engine's side channel: carries questions to a {@link SideChannelDesk} and
 * its answers back.
 */
public interface SideChannel extends AutoCloseable {
    /** Opens one. */
    @FunctionalInterface
    interface Opener {
        /**
         * Opens a side channel.
         *
         * @param desk decides what is answered; it is asked from any thread
         * @throws SideChannelException if the address cannot be bound
         */
        SideChannel open(SideChannelAddress address, SideChannelDesk desk);
    }

    /** The asking end. */
    @FunctionalInterface
    interface Dialer {
        /**
         * Connects to a peer's side channel. Waits.
         *
         * @param limit of the whole conversation
         * @throws IOException if there is no connection in time
         */
        Conversation dial(SideChannelAddress address, Duration limit) throws IOException;

        /**
         * As {@link #dial}, for questions that may be asked twice: may go on over a connection that
         * an earlier such conversation {@linkplain Conversation#leave left}, and connect only when
         * something is asked.
         */
        default Conversation resume(SideChannelAddress address, Duration limit) throws IOException {
            return dial(address, limit);
        }
    }

    /** Questions to one peer over one connection. */
    interface Conversation extends AutoCloseable {
        /**
         * Asks, and waits for the answer.
         *
         * @throws IOException if none comes in time
         * @throws WireException if something else comes
         */
        Answer ask(byte[] question) throws IOException;

        /**
         * Ends the conversation, all of whose answers were as they should be: a later one may go on
         * over its connection.
         */
        default void leave() {}

        /** Ends the conversation, and its connection unless that was left. Idempotent. */
        @Override
        void close() throws IOException;
    }

    /**
     * What a desk answers.
     *
     * @param body msgpack, what was asked for
     * @param timestamp msgpack float64, the answering engine's clock in seconds
     */
    @SuppressWarnings("ArrayRecordComponent") // opaque bytes, never changed
    record Answer(byte[] body, byte[] timestamp) {}

    /** The port that it listens on. */
    int port();

    /** Frees the port. Idempotent. */
    @Override
    void close();
}
