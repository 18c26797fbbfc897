package dev.dormouse.connector;

/**
 * Why a read or write failed.
 *
 * @param type vLLM's word for when it failed
 * @param reason for an operator
 */
record Failure(Type type, String reason) {
    /** When something failed, in the words of vLLM's log. */
    enum Type {
        /** A peer could not be asked, or what it answered is of no use. */
        HANDSHAKE_SETUP_FAILED,
        /** A request waited for such a handshake. */
        HANDSHAKE_FAILED,
        /** A transfer was not begun. */
        TRANSFER_SETUP_FAILED,
        /** A transfer was begun. */
        TRANSFER_FAILED,
        /** The transport could not say how far a transfer is. */
        TRANSFER_EXCEPTION,
        /** A transfer's resources could not be freed. */
        TRANSFER_RELEASE_FAILED,
        /** A peer could not be told something. */
        NOTIFICATION_FAILED,
        /** A holder could not ask the engine that waits to be written. */
        PUSH_HANDSHAKE_FAILED,
        /** An engine could not ask the holder that shall write. */
        PUSH_REG_HANDSHAKE_FAILED,
        /** A holder could not be told that an engine waits. */
        PUSH_REG_NOTIF_FAILED
    }

    /** The same; if it is that of a handshake, under the type that vLLM has for pushes. */
    Failure withHandshakeAs(Type pushType) {
        return type == Type.HANDSHAKE_FAILED ? new Failure(pushType, reason) : this;
    }
}
