package dev.dormouse.transport.local;

import dev.dormouse.transport.Transfer;
import dev.dormouse.transport.TransferState;

/** A transfer over one of two ways. It keeps its lists also on the way that it does not take. */
final class AutoTransfer implements Transfer {
    private final AutoBlockList local;
    private final AutoBlockList remote;
    private final Transfer inner;
    private boolean released;

    AutoTransfer(AutoBlockList local, AutoBlockList remote, Transfer inner) {
        this.local = local;
        this.remote = remote;
        this.inner = inner;
        local.addTransfer(1);
        remote.addTransfer(1);
    }

    @Override
    public TransferState poll() {
        return inner.poll();
    }

    @Override
    public boolean release() {
        if (!released && inner.release()) {
            released = true;
            local.addTransfer(-1);
            remote.addTransfer(-1);
        }
        return released;
    }
}
