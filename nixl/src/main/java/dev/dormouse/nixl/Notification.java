package dev.dormouse.nixl;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * A message from a peer. NIXL delivers each once, in no order across peers. The sender's name is
 * what the sender claims: nothing vouches for it.
 */
public final class Notification {
    private final String agent;
    private final byte[] bytes;

    Notification(String agent, byte[] bytes) {
        this.agent = agent;
        this.bytes = bytes;
    }

    /** The claimed name of the sending agent. */
    public String agent() {
        return agent;
    }

    /** A copy of the message. */
    public byte[] bytes() {
        return bytes.clone();
    }

    /** The message as UTF-8 text; malformed parts become U+FFFD. */
    public String text() {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Notification that
                && agent.equals(that.agent)
                && Arrays.equals(bytes, that.bytes);
    }

    @Override
    public int hashCode() {
        return 31 * agent.hashCode() + Arrays.hashCode(bytes);
    }

    @Override
    public String toString() {
        return "Notification[agent=" + agent + ", bytes=" + bytes.length + "]";
    }
}
