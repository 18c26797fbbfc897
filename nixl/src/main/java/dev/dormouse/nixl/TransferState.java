package dev.dormouse.nixl;

/** Where a posted transfer stands. Switch over it without default. */
public sealed interface TransferState {
    /** All bytes have arrived; an attached notification is sent. */
    record Done() implements TransferState {}

    /** Not finished: poll again. */
    record InProgress() implements TransferState {}

    /**
     * The bytes may or may not have arrived, and the peer is lost ({@link RemoteAgent#isLost()}).
     *
     * @param status what NIXL said
     */
    record Failed(NixlStatus status) implements TransferState {}

    /** Whether no more bytes move. */
    default boolean isTerminal() {
        return !(this instanceof InProgress);
    }
}
