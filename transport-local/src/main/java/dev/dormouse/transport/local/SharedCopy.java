package dev.dormouse.transport.local;

import org.jspecify.annotations.Nullable;

/**
 * A copy that several threads take part in, a piece at a time. It has ended when no piece is left,
 * or one has failed, and none is under way: whoever joins later finds nothing to do. Safe for all
 * threads.
 */
final class SharedCopy {
    /** Copies a piece while both sides are mapped. */
    @FunctionalInterface
    interface Copier {
        /**
         * Has copied the piece when it returns.
         *
         * @return why it has not; null if it has
         */
        @Nullable String copy(HostCopy.Piece piece);
    }

    private static final String THREAD_FAILED = "a thread that copies has failed";

    private final HostCopy plan;
    private final Copier copier;
    private int underWay;
    private @Nullable String failure;

    SharedCopy(HostCopy plan, Copier copier) {
        this.plan = plan;
        this.copier = copier;
    }

    HostCopy plan() {
        return plan;
    }

    /** Copies pieces until none is left to begin, or fails the copy. Never throws. */
    void join() {
        try {
            HostCopy.Piece piece = begin();
            while (piece != null) {
                copy(piece);
                piece = begin();
            }
        } catch (RuntimeException | Error e) { // no memory for a piece, or for saying why
            fail(THREAD_FAILED);
        }
    }

    /**
     * Waits for the pieces that others have begun, after a {@link #join}.
     *
     * @return the first failure; null if all is copied
     */
    synchronized @Nullable String awaitEnd() {
        while (underWay > 0) {
            try {
                wait();
            } catch (InterruptedException e) {
                // nothing ends before its pieces
            }
        }
        return failure;
    }

    private synchronized HostCopy.@Nullable Piece begin() {
        HostCopy.Piece piece = failure == null ? plan.next() : null;
        if (piece != null) {
            underWay++;
        }
        return piece;
    }

    private void copy(HostCopy.Piece piece) {
        String failed = THREAD_FAILED;
        try {
            failed = copier.copy(piece);
        } catch (RuntimeException | Error e) { // an InternalError if a page could not be had
            failed = e.toString();
        } finally {
            end(failed);
        }
    }

    private synchronized void fail(String reason) {
        if (failure == null) {
            failure = reason;
        }
    }

    private synchronized void end(@Nullable String failed) {
        if (failed != null) {
            fail(failed);
        }
        underWay--;
        if (underWay == 0) {
            notifyAll();
        }
    }
}
