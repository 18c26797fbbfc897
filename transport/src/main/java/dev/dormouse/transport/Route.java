package dev.dormouse.transport;

/**
 * How a peer's memory is reached.
 *
 * @param transport the transport's {@link KvTransport#name name}
 * @param detour why it is not a nearer transport that this agent has, short and printable whatever
 *     the peer has told; empty if there is none
 */
public record Route(String transport, String detour) {
    private static final int MAX_CHARS = 300;

    /** Makes the reason fit for logs. */
    public Route {
        String cut = detour.length() > MAX_CHARS ? detour.substring(0, MAX_CHARS) + "…" : detour;
        detour = cut.replaceAll("\\p{Cntrl}", "?");
    }

    /** The only or the nearest way. */
    public static Route direct(String transport) {
        return new Route(transport, "");
    }

    @Override
    public String toString() {
        return detour.isEmpty() ? transport : transport + " (" + detour + ")";
    }
}
