package dev.dormouse.transport;

/**
 * How a peer's memory is reached.
 *
 * @param transport the transport's {@link KvTransport#name name}
 * @param detour why it is not a nearer transport that this agent has; empty if there is none
 */
public record Route(String transport, String detour) {
    /** The only or the nearest way. */
    public static Route direct(String transport) {
        return new Route(transport, "");
    }

    @Override
    public String toString() {
        return detour.isEmpty() ? transport : transport + " (" + detour + ")";
    }
}
