package dev.dormouse.connector;

/**
 * What becomes of orders when it is known how their peer stands: the part of a connector that
 * differs between reading from a holder and being written to.
 */
interface OrderRules {
    /** What happens next. */
    sealed interface Next {
        /** The order was carried out, or has begun. */
        Next BEGUN = new Begun();

        /** The peer must be asked first. */
        Next ASK = new Ask();

        /** The loaded peer must say that it holds the request for this engine. */
        Next CLAIM = new Claim();

        /** Somebody else must do something first. */
        Next WAIT = new Wait();

        /** See {@link #BEGUN}. */
        record Begun() implements Next {}

        /** See {@link #ASK}. */
        record Ask() implements Next {}

        /** See {@link #CLAIM}. */
        record Claim() implements Next {}

        /** See {@link #WAIT}. */
        record Wait() implements Next {}

        /**
         * The order must not be carried out.
         *
         * @param late whether that is so since its time is over
         */
        record Refuse(String reason, boolean late) implements Next {
            /** A refusal for another reason than the time. */
            Refuse(String reason) {
                this(reason, false);
            }
        }
    }

    /** Carries the order out if it may be. */
    Next next(WaitingOrder waiting, RemoteEngine peer, long nowNanos);

    /** An order that has not begun ended, and will not. */
    void ended(PeerOrder order, Failure failure);

    /** Forgets what is too old to matter. */
    void forget(long nowNanos);
}
