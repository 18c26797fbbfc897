package dev.dormouse.engine;

/** What a wake can bring back. */
public enum WakeTag {
    /** The model's weights. */
    WEIGHTS("weights"),
    /** The KV cache. */
    KV_CACHE("kv_cache"),
    /** Scheduling after a sleep of level 0. */
    SCHEDULING("scheduling");

    private final String wireName;

    WakeTag(String wireName) {
        this.wireName = wireName;
    }

    /** The name in HTTP requests. */
    public String wireName() {
        return wireName;
    }
}
