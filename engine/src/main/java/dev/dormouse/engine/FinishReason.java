package dev.dormouse.engine;

/** Why a request ended. */
public enum FinishReason {
    /** An end token, a stop token or a stop string. */
    STOP("stop"),
    /** The token limit or the model's length. */
    LENGTH("length"),
    /** Its client left, or the engine was told to end it. */
    ABORT("abort");

    private final String wireName;

    FinishReason(String wireName) {
        this.wireName = wireName;
    }

    /** The name in API responses. */
    public String wireName() {
        return wireName;
    }
}
