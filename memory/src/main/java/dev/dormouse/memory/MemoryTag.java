package dev.dormouse.memory;

/** What memory is used for; all memory of a tag sleeps and wakes together. */
public enum MemoryTag {
    /** The model's weights. */
    WEIGHTS("weights"),
    /** The paged KV cache. */
    KV_CACHE("kv_cache");

    private final String label;

    MemoryTag(String label) {
        this.label = label;
    }

    /** The tag's name in requests, metrics and messages, as vLLM spells it. */
    public String label() {
        return label;
    }
}
