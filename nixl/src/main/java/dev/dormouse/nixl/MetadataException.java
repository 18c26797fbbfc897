package dev.dormouse.nixl;

/**
 * A peer's metadata was refused before NIXL saw it: it is malformed, too large, or its loading
 * would harm what is loaded already. Nothing has changed.
 */
public final class MetadataException extends NixlException {
    private static final long serialVersionUID = 1;

    MetadataException(String agent, String peer, String reason) {
        super("load remote metadata", agent, peer, reason);
    }
}
