package dev.dormouse.nixl;

/** Which way a transfer goes, seen from the agent that posts it. */
public enum TransferOperation {
    /** From the peer's memory into local memory. */
    READ(0),
    /** From local memory into the peer's. */
    WRITE(1);

    private final int code;

    TransferOperation(int code) {
        this.code = code;
    }

    int code() {
        return code;
    }
}
