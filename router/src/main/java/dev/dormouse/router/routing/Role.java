package dev.dormouse.router.routing;

/** What the router asks an engine for; also the name of the leg. */
public enum Role {
    /** Computes a prompt's KV and holds it. */
    PREFILL("prefill"),
    /** Reads the KV and produces the answer. */
    DECODE("decode");

    private final String label;

    Role(String label) {
        this.label = label;
    }

    /** The name in messages, headers and metrics. */
    public String label() {
        return label;
    }
}
