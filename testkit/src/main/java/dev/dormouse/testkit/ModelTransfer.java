package dev.dormouse.testkit;

import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;
import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A read or write. All its data move in the poll that finds its time come. */
final class ModelTransfer implements Transfer {
    private final ModelTransport owner;
    private final boolean writes;
    private final ModelBlockList local;
    private final ModelBlockList remote;
    private final ModelPeer peer;
    private final int[] localIndices;
    private final int[] remoteIndices;
    private final byte[] notification;
    private @Nullable ModelFault fault;
    private final long postedNanos;
    private final long dueNanos;
    private TransferState state = new TransferState.InProgress();
    private int refusals;
    private int releaseFaults;
    private boolean released;

    ModelTransfer(
            ModelTransport owner,
            boolean writes,
            ModelBlockList local,
            int[] localIndices,
            ModelBlockList remote,
            int[] remoteIndices,
            byte[] notification,
            @Nullable ModelFault fault,
            long delayNanos) {
        this.owner = owner;
        this.writes = writes;
        this.local = local;
        this.remote = remote;
        this.peer = Objects.requireNonNull(remote.peer());
        this.localIndices = localIndices.clone();
        this.remoteIndices = remoteIndices.clone();
        this.notification = notification.clone();
        this.fault = fault;
        this.postedNanos = owner.fabric().nanoTime();
        this.dueNanos = postedNanos + delayNanos;
        this.refusals =
                fault instanceof ModelFault.FailAndRefuseRelease refuse ? refuse.refusals() : 0;
        this.releaseFaults = fault instanceof ModelFault.ThrowOnRelease thrown ? thrown.times() : 0;
        local.addTransfer(1);
        remote.addTransfer(1);
    }

    @Override
    public TransferState poll() {
        synchronized (owner.fabric()) {
            if (released) {
                throw new IllegalStateException("poll: the transfer was released");
            }
            if (fault instanceof ModelFault.ThrowOnPoll) {
                throw new TransportException("poll: injected fault");
            }
            if (state instanceof TransferState.InProgress
                    && !(fault instanceof ModelFault.NeverComplete && peer.isAlive())
                    && owner.fabric().nanoTime() - dueNanos >= 0) {
                state = complete();
            }
            return state;
        }
    }

    @Override
    public boolean release() {
        synchronized (owner.fabric()) {
            if (released) {
                return true;
            }
            if (isMoving()) {
                return false;
            }
            if (releaseFaults > 0) {
                releaseFaults--;
                throw new TransportException("release: injected fault");
            }
            if (refusals > 0) {
                refusals--;
                move(localIndices.length);
                return false;
            }
            end();
            return true;
        }
    }

    boolean isWith(ModelPeer other) {
        return peer == other;
    }

    /** True while it may still use its peer's memory, whatever becomes of the peer. */
    boolean clings() {
        return fault instanceof ModelFault.NeverComplete || refusals > 0;
    }

    /** The reader gives up the peer: what can be broken off moves no data any more. */
    void breakOff(String reason) {
        if (state instanceof TransferState.InProgress && !clings()) {
            state = lost(reason);
        }
    }

    private TransferState lost(String reason) {
        return new TransferState.Failed(
                "remote agent " + peer.agentName() + " was disconnected: " + reason);
    }

    /** A transfer that would never complete fails in its next poll. */
    void giveUp() {
        if (fault instanceof ModelFault.NeverComplete) {
            fault = new ModelFault.FailHalfWay();
        }
    }

    /** Like NIXL over UCX: what is under way is not cancelled, since its data may still arrive. */
    private boolean isMoving() {
        return state instanceof TransferState.InProgress
                && !(fault instanceof ModelFault.ThrowOnPoll)
                && poll() instanceof TransferState.InProgress;
    }

    /** Ends it unconditionally, as the process's end does. */
    void end() {
        released = true;
        local.addTransfer(-1);
        remote.addTransfer(-1);
        owner.forget(this);
    }

    private TransferState complete() {
        ModelTransport target = peer.reach();
        if (target == null) {
            return lost(peer.lostBecause());
        }
        if (fault instanceof ModelFault.FailHalfWay) {
            move(localIndices.length / 2);
            return new TransferState.Failed("injected fault after half of the blocks");
        }
        if (fault instanceof ModelFault.FailAndRefuseRelease) {
            return new TransferState.Failed("injected fault before the last data");
        }
        long bytes = move(localIndices.length);
        if (bytes < 0) {
            peer.disconnect();
            return lost("it does not know the key");
        }
        target.deliver(new PeerMessage(owner.agentName(), notification));
        return new TransferState.Done(
                Duration.ofNanos(owner.fabric().nanoTime() - postedNanos),
                Duration.ZERO,
                bytes,
                localIndices.length);
    }

    /** Moves the first {@code blocks} blocks; -1, and none, if the peer refuses a key. */
    private long move(int blocks) {
        ModelTransport target = peer.reach();
        if (target == null) {
            return -1;
        }
        for (int i = 0; i < blocks; i++) {
            if (!isVirtual()
                    && peer.section(target, remote.remoteBlock(remoteIndices[i]).key()) == null) {
                return -1;
            }
        }
        long bytes = 0;
        for (int i = 0; i < blocks; i++) {
            ModelBlockList.RemoteBlock theirs = remote.remoteBlock(remoteIndices[i]);
            ModelBlockList.LocalBlock ours = local.localBlock(localIndices[i]);
            if (isVirtual()) {
                moveByAddress(target.memory(), theirs.address(), ours.address(), ours.bytes());
            } else {
                byte[] data = new byte[ours.bytes()];
                ModelRegistration.Section section =
                        Objects.requireNonNull(peer.section(target, theirs.key()));
                if (writes) {
                    ours.section().read(ours.address(), data);
                    section.write(theirs.address(), data);
                } else {
                    section.read(theirs.address(), data);
                    ours.section().write(ours.address(), data);
                }
            }
            bytes += ours.bytes();
        }
        return bytes;
    }

    private void moveByAddress(ModelMemory theirMemory, long theirs, long ours, int bytes) {
        if (writes) {
            theirMemory.writeFromOutside(theirs, owner.memory().readFromOutside(ours, bytes));
        } else {
            owner.memory().writeFromOutside(ours, theirMemory.readFromOutside(theirs, bytes));
        }
    }

    private boolean isVirtual() {
        return owner.fabric().addressing() == Addressing.VIRTUAL;
    }
}
