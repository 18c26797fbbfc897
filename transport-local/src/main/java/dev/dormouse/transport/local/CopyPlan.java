package dev.dormouse.transport.local;

/** A copy between blocks here and a peer's, piece by piece. The copying thread makes all calls. */
abstract sealed class CopyPlan permits HostCopy, DeviceCopy {
    private final long bytes;

    CopyPlan(long bytes) {
        this.bytes = bytes;
    }

    /** Bytes of all blocks. */
    final long bytes() {
        return bytes;
    }

    /** How many stretches of memory are copied. */
    abstract int descriptors();

    /** Whether all pieces are copied, or under way. */
    abstract boolean isDone();

    /** What can be done for the next piece before its memory is touched. */
    void prepare() {}

    /** Copies the next piece, or starts to. Both sides must be mapped. */
    abstract void copyPiece();

    /** Waits until no piece is under way. */
    void await() {}
}
