package dev.dormouse.router.routing;

/** How a prompt got to the decode engine. */
public enum HandOver {
    /** A prefill engine holds its KV. */
    YES("yes"),
    /** A prefill engine was asked, and holds nothing. */
    NO("no"),
    /** No prefill engine was asked; see {@link Detour}. */
    BYPASSED("bypassed");

    private final String label;

    HandOver(String label) {
        this.label = label;
    }

    /** The word that the client is told. */
    public String label() {
        return label;
    }
}
