package dev.dormouse.nixl;

import org.jspecify.annotations.Nullable;

/** A call of NIXL returned an error. */
public final class NixlStatusException extends NixlException {
    private static final long serialVersionUID = 1;

    private final int code;

    NixlStatusException(
            String operation, int code, String agent, @Nullable String peer, String values) {
        super(
                operation,
                agent,
                peer,
                values + ": NIXL status " + new NixlStatus(code) + "; see NIXL's line on stderr");
        this.code = code;
    }

    /** What NIXL returned. */
    public NixlStatus status() {
        return new NixlStatus(code);
    }
}
