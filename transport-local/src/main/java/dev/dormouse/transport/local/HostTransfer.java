package dev.dormouse.transport.local;

import org.jspecify.annotations.Nullable;

/** A copy between host memory. Copy threads run it; everything else is its user's thread. */
final class HostTransfer extends LocalTransfer {
    private final SharedCopy copy;

    /** Starts nothing; {@link CopyThreads#submit} does. */
    HostTransfer(Request request, HostCopy plan) {
        super(request);
        copy = new SharedCopy(plan, this::copy);
    }

    /** How much is to be copied. */
    long bytes() {
        return copy.plan().bytes();
    }

    /** Copies as long as there is something to begin. Any copy thread's. */
    void help() {
        copy.join();
    }

    /**
     * Copies, tells the owner when all is copied, ends the transfer, and wakes its user. One copy
     * thread's.
     */
    void lead() {
        copy.join();
        String failure = copy.awaitEnd();
        try {
            become(
                    failure == null
                            ? finish(copy.plan().bytes(), copy.plan().descriptors())
                            : failed(failure));
        } catch (RuntimeException | Error e) { // nobody else would end it
            become(failed(e.toString()));
        }
        owner().wakeUser();
    }

    private @Nullable String copy(HostCopy.Piece piece) {
        if (owner().isEnding()) {
            return "this agent was closed";
        }
        return peer().isConnected() && peer().mapping().use(piece::copy) ? null : endReason();
    }
}
