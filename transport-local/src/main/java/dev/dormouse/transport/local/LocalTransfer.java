package dev.dormouse.transport.local;

import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import java.time.Duration;
import java.util.List;

/** A copy from or to a peer's memory. */
abstract sealed class LocalTransfer implements Transfer permits HostTransfer, DeviceTransfer {
    /**
     * What a transfer is of.
     *
     * @param notification frames for the owner, when all is copied
     * @param startNanos when its user asked for it
     */
    record Request(
            String operation,
            LocalTransport owner,
            LocalBlockList local,
            LocalBlockList remote,
            LocalPeer peer,
            List<byte[]> notification,
            long startNanos) {}

    private final Request request;
    private long postNanos;
    private volatile TransferState state = new TransferState.InProgress();
    private boolean released;

    /** Takes hold of the lists. */
    LocalTransfer(Request request) {
        this.request = request;
        request.local().addTransfer(1);
        request.remote().addTransfer(1);
    }

    final LocalPeer peer() {
        return request.peer();
    }

    final LocalTransport owner() {
        return request.owner();
    }

    final boolean isInProgress() {
        return state instanceof TransferState.InProgress;
    }

    final void become(TransferState next) {
        state = next;
    }

    /** Tells how long it took to get here. */
    final void markPosted() {
        postNanos = System.nanoTime() - request.startNanos();
    }

    /** Lets it end where its user sees it, if it can. */
    void advance() {}

    /** Tells the owner that all is copied. */
    final TransferState finish(long bytes, int descriptors) {
        return switch (peer().send(request.notification())) {
            case YES -> {
                // The owner, or its memory's next user, changes nothing before its socket is
                // closed; what was sent at once was sent before that.
                if (peer().isSentInVain()) {
                    yield failed(endReason());
                }
                yield new TransferState.Done(
                        Duration.ofNanos(System.nanoTime() - request.startNanos()),
                        Duration.ofNanos(postNanos),
                        bytes,
                        descriptors);
            }
            case FULL -> failed("it takes no messages: it may be stopped");
            case CLOSED -> failed(endReason());
        };
    }

    final String endReason() {
        return peer().reason().isEmpty() ? "disconnected" : peer().reason();
    }

    final TransferState.Failed failed(String why) {
        return new TransferState.Failed(
                "%s peer %s failed: %s".formatted(request.operation(), peer().agentName(), why));
    }

    /** Ends what has not ended; when nothing copies any more. */
    final void endWithAgent() {
        if (isInProgress()) {
            state = failed("this agent was closed");
        }
        boolean _ = release();
    }

    @Override
    public final TransferState poll() {
        if (released) {
            throw new IllegalStateException("poll: the transfer was released");
        }
        advance();
        return state;
    }

    @Override
    public final boolean release() {
        if (!released) {
            advance();
        }
        if (!released && !isInProgress()) {
            released = true;
            request.local().addTransfer(-1);
            request.remote().addTransfer(-1);
            owner().forget(this);
        }
        return released;
    }
}
