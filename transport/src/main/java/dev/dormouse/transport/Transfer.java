package dev.dormouse.transport;

/**
 * A read or write that was started. Its blocks, on both sides, must not be used for anything else
 * before {@link #release} has returned true.
 */
public interface Transfer {
    /** Asks how far the transfer is; drives it, too. */
    TransferState poll();

    /**
     * Frees the transfer's resources.
     *
     * @return false if the transport still uses the blocks; ask again later
     */
    boolean release();
}
