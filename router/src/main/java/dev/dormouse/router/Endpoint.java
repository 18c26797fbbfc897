package dev.dormouse.router;

/** A path that the router passes to engines. Everything else of an engine stays unreachable. */
enum Endpoint {
    /** Two legs. */
    COMPLETIONS("/v1/completions"),
    /** Two legs. */
    CHAT_COMPLETIONS("/v1/chat/completions"),
    /** A decode engine's answer. */
    MODELS("/v1/models");

    private final String path;

    Endpoint(String path) {
        this.path = path;
    }

    /** The path, on the router as on an engine. */
    String path() {
        return path;
    }
}
