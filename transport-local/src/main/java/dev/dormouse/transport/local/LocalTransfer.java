package dev.dormouse.transport.local;

import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A copy from or to a peer's pages. The copy thread runs it; everything else is its user's thread.
 */
final class LocalTransfer implements Transfer, Runnable {
    private final String operation;
    private final LocalTransport owner;
    private final LocalBlockList local;
    private final LocalBlockList remote;
    private final LocalPeer peer;
    private final CopyPlan plan;
    private final List<byte[]> notification;
    private final long startNanos;
    private long postNanos;
    private volatile TransferState state = new TransferState.InProgress();
    private boolean released;

    LocalTransfer(
            String operation,
            LocalTransport owner,
            LocalBlockList local,
            LocalBlockList remote,
            LocalPeer peer,
            CopyPlan plan,
            byte[] notification,
            long startNanos) {
        this.operation = operation;
        this.owner = owner;
        this.local = local;
        this.remote = remote;
        this.peer = peer;
        this.plan = plan;
        this.notification = Frame.ofMessage(notification);
        this.startNanos = startNanos;
        local.addTransfer(1);
        remote.addTransfer(1);
    }

    /** Tells how long it took to get here; right before the copy thread gets it. */
    LocalTransfer posted() {
        postNanos = System.nanoTime() - startNanos;
        return this;
    }

    /** Copies, and tells the owner; the copy thread's. */
    @Override
    public void run() {
        try {
            state = copy();
        } catch (RuntimeException | Error e) { // an InternalError if a page could not be had
            state = failed(e.toString());
        }
    }

    private TransferState copy() {
        @Nullable TransferState failure;
        try {
            failure = copyAll();
        } finally {
            plan.await();
        }
        if (failure != null) {
            return failure;
        }
        // The owner, or its memory's next user, changes nothing before its socket is closed.
        if (!peer.connection().isHeld()) {
            return failed(endReason());
        }
        return switch (peer.connection().send(notification)) {
            case YES -> {
                owner.wakeFor(peer.connection());
                yield new TransferState.Done(
                        Duration.ofNanos(System.nanoTime() - startNanos),
                        Duration.ofNanos(postNanos),
                        plan.bytes(),
                        plan.descriptors());
            }
            case FULL -> failed("it takes no messages: it may be stopped");
            case CLOSED -> failed(endReason());
        };
    }

    private @Nullable TransferState copyAll() {
        while (!plan.isDone()) {
            if (owner.isEnding()) {
                return failed("this agent was closed");
            }
            plan.prepare();
            if (!peer.isConnected() || !peer.mapping().use(plan::copyPiece)) {
                return failed(endReason());
            }
        }
        return null;
    }

    private String endReason() {
        return peer.reason().isEmpty() ? "disconnected" : peer.reason();
    }

    /** Ends what the copy thread did not come to; after that thread has ended. */
    void endWithAgent() {
        if (state instanceof TransferState.InProgress) {
            state = failed("this agent was closed");
        }
        release();
    }

    private TransferState.Failed failed(String why) {
        return new TransferState.Failed(
                "%s peer %s failed: %s".formatted(operation, peer.agentName(), why));
    }

    @Override
    public TransferState poll() {
        if (released) {
            throw new IllegalStateException("poll: the transfer was released");
        }
        return state;
    }

    @Override
    public boolean release() {
        if (!released && !(state instanceof TransferState.InProgress)) {
            released = true;
            local.addTransfer(-1);
            remote.addTransfer(-1);
            owner.forget(this);
        }
        return released;
    }
}
