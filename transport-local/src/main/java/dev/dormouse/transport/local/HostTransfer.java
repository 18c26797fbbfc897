package dev.dormouse.transport.local;

import dev.dormouse.transport.TransferState;

/** A copy between host memory. The copy thread runs it; everything else is its user's thread. */
final class HostTransfer extends LocalTransfer implements Runnable {
    private final HostCopy copy;

    /** Starts nothing; {@link CopyThread#submit} does. */
    HostTransfer(Request request, HostCopy copy) {
        super(request);
        this.copy = copy;
    }

    /** Copies, and tells the owner; the copy thread's. */
    @Override
    public void run() {
        try {
            become(copyAll());
        } catch (RuntimeException | Error e) { // an InternalError if a page could not be had
            become(failed(e.toString()));
        }
    }

    private TransferState copyAll() {
        while (!copy.isDone()) {
            if (owner().isEnding()) {
                return failed("this agent was closed");
            }
            if (!peer().isConnected() || !peer().mapping().use(copy::copyPiece)) {
                return failed(endReason());
            }
        }
        return finish(copy.bytes(), copy.descriptors());
    }
}
