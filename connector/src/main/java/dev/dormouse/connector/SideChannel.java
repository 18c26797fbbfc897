package dev.dormouse.connector;

import java.util.Map;

/** The answering end of an engine's side channel. */
interface SideChannel extends AutoCloseable {
    /** Opens one. */
    @FunctionalInterface
    interface Opener {
        /**
         * Opens a side channel that serves nothing yet.
         *
         * @throws SideChannelException if the address cannot be bound
         */
        SideChannel open(SideChannelAddress address);
    }

    /** The port that it listens on. */
    int port();

    /** From now on, serves exactly these payloads. */
    void serve(Map<RankId, byte[]> payloads);

    /** From now on, answers questions about held requests from {@code book}. */
    void answerHolds(HoldBook book);

    /** Frees the port. Idempotent. */
    @Override
    void close();
}
