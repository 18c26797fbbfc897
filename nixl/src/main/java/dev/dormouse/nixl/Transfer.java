package dev.dormouse.nixl;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A transfer of a fixed set of blocks. Post it, poll {@link #state()} until it is terminal, post it
 * again if wanted, release it.
 */
public final class Transfer extends NixlObject {
    private static final TransferState DONE = new TransferState.Done();
    private static final TransferState IN_PROGRESS = new TransferState.InProgress();

    private final TransferOperation operation;
    private final RemoteAgent peer;
    private final MemorySegment request;
    private final long totalBytes;
    private @Nullable TransferState state;
    private boolean abandoned;

    Transfer(
            TransferOperation operation,
            RemoteAgent peer,
            List<? extends NixlObject> parents,
            MemorySegment request,
            long totalBytes) {
        super(peer.agent, parents);
        this.operation = operation;
        this.peer = peer;
        this.request = request;
        this.totalBytes = totalBytes;
    }

    /** Which way the bytes go. */
    public TransferOperation operation() {
        return operation;
    }

    /** The other side. */
    public RemoteAgent peer() {
        return peer;
    }

    /** How many bytes one posting moves. */
    public long totalBytes() {
        return totalBytes;
    }

    /**
     * Starts it, with the notification that it was created or last posted with.
     *
     * @return where it stands now; small transfers may be done at once
     * @throws IllegalStateException when the last posting is still in progress
     */
    public TransferState post() {
        return postWith(null);
    }

    /**
     * Starts it, and has {@code notification} delivered to the peer when all bytes have arrived.
     *
     * @return where it stands now
     * @throws IllegalStateException when the last posting is still in progress
     */
    public TransferState post(byte[] notification) {
        agent.checkNotification(notification);
        return postWith(notification);
    }

    /**
     * Where the last posting stands. Asking drives it on when there is no progress thread.
     *
     * @throws IllegalStateException when it was never posted
     */
    public TransferState state() {
        synchronized (agent.lock) {
            requireUsable("poll");
            if (state == null) {
                throw new IllegalStateException("poll refused: " + this + " was never posted");
            }
            return poll();
        }
    }

    /**
     * NIXL's measurement of the last posting; empty when the agent was configured without.
     *
     * @throws IllegalStateException when it is not done
     */
    public Optional<TransferTelemetry> telemetry() {
        synchronized (agent.lock) {
            requireUsable("get transfer telemetry");
            if (!(state instanceof TransferState.Done)) {
                throw new IllegalStateException(
                        "get transfer telemetry refused: " + this + " is " + state + ", not done");
            }
            if (!agent.config().telemetry()) {
                return Optional.empty();
            }
            return Optional.of(agent.transfers.telemetry(request, peer.name()));
        }
    }

    /**
     * Frees it if no byte can move on its behalf any more. A transfer in progress is never
     * cancelled: over UCX a cancelled one may still write its memory ({@code
     * nixlUcxBackendReqH::release}).
     */
    public ReleaseResult release() {
        synchronized (agent.lock) {
            return isOpen() ? tryRelease() : ReleaseResult.RELEASED;
        }
    }

    /**
     * As {@link #release()}; one that is still active is handed to the agent, which tries again
     * (see {@link NixlAgent#retryReleases()}). What it is built on stays in use until then.
     *
     * @throws IllegalStateException when the agent holds too many such transfers
     */
    @Override
    public void close() {
        synchronized (agent.lock) {
            if (isOpen() && !abandoned && tryRelease() == ReleaseResult.STILL_ACTIVE) {
                agent.abandon(this);
                abandoned = true;
            }
        }
    }

    ReleaseResult tryRelease() {
        if (state != null && !poll().isTerminal()) {
            return ReleaseResult.STILL_ACTIVE;
        }
        if (!agent.transfers.release(request)) {
            return ReleaseResult.STILL_ACTIVE;
        }
        detach();
        return ReleaseResult.RELEASED;
    }

    @Override
    String kind() {
        return operation + " transfer of " + totalBytes + " bytes with " + peer.name();
    }

    /**
     * For the agent's end. A transfer in progress is left to NIXL's end, and its handle with it:
     * UCX completes a request while it stops, also one that was freed before, and crashes.
     */
    @Override
    void free() {
        if (state != null && !poll().isTerminal()) {
            return;
        }
        if (!agent.transfers.release(request)) {
            throw new NixlException(
                    "release transfer", agent.name(), peer.name(), this + " is held by NIXL");
        }
    }

    private TransferState postWith(byte @Nullable [] notification) {
        synchronized (agent.lock) {
            requireUsable("post");
            if (state != null && !poll().isTerminal()) {
                throw new IllegalStateException(
                        "post refused: " + this + " is still in progress; poll until it is not");
            }
            if (peer.lost()) {
                state = new TransferState.Failed(NixlStatus.NOT_FOUND);
                return state;
            }
            return update(agent.transfers.post(request, notification));
        }
    }

    private TransferState poll() {
        TransferState known = Objects.requireNonNull(state);
        return known.isTerminal() ? known : update(agent.transfers.status(request));
    }

    private TransferState update(int status) {
        TransferState next;
        if (status == NixlStatus.SUCCESS.code()) {
            next = DONE;
        } else if (status > 0) {
            next = IN_PROGRESS;
        } else {
            peer.noteBrokenConnection();
            next = new TransferState.Failed(new NixlStatus(status));
        }
        state = next;
        return next;
    }

    private void requireUsable(String operation) {
        requireOpen(operation);
        if (abandoned) {
            throw new IllegalStateException(operation + " refused: " + this + " is closed");
        }
    }
}
