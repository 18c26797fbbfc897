package dev.dormouse.nixl;

/**
 * How NIXL itself guards its state ({@code nixl_capi_thread_sync_t}). {@link NixlAgent} serialises
 * its calls anyway.
 */
public enum ThreadSync {
    /** No locks; enough for {@link NixlAgent}. */
    NONE(0),
    /** One lock. */
    STRICT(1),
    /** A lock for readers and writers; makes UCX workers multi-threaded. */
    READ_WRITE(2);

    private final int code;

    ThreadSync(int code) {
        this.code = code;
    }

    int code() {
        return code;
    }
}
