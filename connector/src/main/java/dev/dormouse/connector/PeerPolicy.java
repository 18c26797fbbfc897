package dev.dormouse.connector;

import java.net.InetAddress;
import java.util.List;
import java.util.Locale;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Which peers an engine talks to, and how much it believes them. The address of a peer comes out of
 * a client's request, and what the peer answers goes on to native code: without a policy, a client
 * decides whom the engine dials. Immutable.
 *
 * <p>A rule is an address ({@code 10.1.2.3}, {@code fd00::7}), a network ({@code 10.0.0.0/8}), or a
 * host name as requests write it, with {@code *} for any characters ({@code *.prefill.local}).
 * Networks and addresses are compared with what the name resolves to. Without a rule every peer is
 * allowed. An address that stands for all interfaces, or for a group, is never a peer.
 */
public final class PeerPolicy {
    /** Blocks of all regions of one peer rank, unless set otherwise. */
    public static final int DEFAULT_MAX_BLOCKS = 1 << 22;

    /** Every peer is allowed. */
    public static final PeerPolicy ANY = new PeerPolicy(List.of(), 1, 65_535, DEFAULT_MAX_BLOCKS);

    private sealed interface Rule {
        /** Host names as requests write them. */
        record Name(Pattern pattern) implements Rule {}

        /** A network; an address is one with all bits. */
        record Network(InetAddress base, int prefixBits) implements Rule {}
    }

    private final List<String> written;
    private final List<Rule> rules;
    private final int minPort;
    private final int maxPort;
    private final int maxBlocks;

    private PeerPolicy(List<String> written, int minPort, int maxPort, int maxBlocks) {
        if (minPort < 1 || maxPort > 65_535 || minPort > maxPort) {
            throw refused("ports " + minPort + "-" + maxPort + " are not within 1-65535");
        }
        if (maxBlocks < 1) {
            throw refused("maxBlocks=" + maxBlocks + " is below 1");
        }
        this.written = List.copyOf(written);
        this.rules = written.stream().map(PeerPolicy::rule).toList();
        this.minPort = minPort;
        this.maxPort = maxPort;
        this.maxBlocks = maxBlocks;
    }

    /**
     * A policy with these rules; none means that all peers are allowed.
     *
     * @throws ConnectorException naming the rule that cannot be understood
     */
    public static PeerPolicy allowing(List<String> rules) {
        return new PeerPolicy(rules, 1, 65_535, DEFAULT_MAX_BLOCKS);
    }

    /**
     * A policy of what was set.
     *
     * @param rules none for any peer
     * @param ports first and last port; none for any
     * @param maxBlocks null for {@link #DEFAULT_MAX_BLOCKS}
     * @throws ConnectorException naming what cannot be understood
     */
    public static PeerPolicy of(
            List<String> rules, List<Integer> ports, @Nullable Integer maxBlocks) {
        PeerPolicy policy = allowing(rules);
        if (!ports.isEmpty()) {
            policy = policy.onPorts(ports.getFirst(), ports.getLast());
        }
        return maxBlocks == null ? policy : policy.withMaxBlocks(maxBlocks);
    }

    /** This policy for side channels on these ports only, both included. */
    public PeerPolicy onPorts(int min, int max) {
        return new PeerPolicy(written, min, max, maxBlocks);
    }

    /** This policy with another limit of the blocks that a peer's rank may name. */
    public PeerPolicy withMaxBlocks(int blocks) {
        return new PeerPolicy(written, minPort, maxPort, blocks);
    }

    /** The most blocks, over all its regions, that a peer's rank may name. */
    public int maxBlocks() {
        return maxBlocks;
    }

    /**
     * Why a peer must not be talked to.
     *
     * @param peer as the request names it
     * @param resolved what it was resolved to, and what will be connected to
     * @return null if it is allowed
     */
    @Nullable String refusal(SideChannelAddress peer, InetAddress resolved) {
        if (resolved.isAnyLocalAddress() || resolved.isMulticastAddress()) {
            return "it stands for "
                    + (resolved.isMulticastAddress() ? "a group" : "every interface")
                    + ", not for a peer";
        }
        if (peer.port() < minPort || peer.port() > maxPort) {
            return "only ports " + minPort + "-" + maxPort + " are allowed";
        }
        boolean allowed =
                rules.isEmpty() || rules.stream().anyMatch(rule -> matches(rule, peer, resolved));
        return allowed ? null : "only " + written + " are allowed";
    }

    @Override
    public String toString() {
        return "peers="
                + (written.isEmpty() ? "any" : written)
                + " ports="
                + minPort
                + "-"
                + maxPort
                + " maxBlocks="
                + maxBlocks;
    }

    private static boolean matches(Rule rule, SideChannelAddress peer, InetAddress resolved) {
        return switch (rule) {
            case Rule.Name name ->
                    name.pattern().matcher(peer.host().toLowerCase(Locale.ROOT)).matches();
            case Rule.Network network ->
                    isWithin(
                            network.base().getAddress(),
                            resolved.getAddress(),
                            network.prefixBits());
        };
    }

    private static boolean isWithin(byte[] base, byte[] address, int prefixBits) {
        if (base.length != address.length) {
            return false;
        }
        for (int bit = 0; bit < prefixBits; bit++) {
            int mask = 0x80 >> (bit & 7);
            if (((base[bit >> 3] ^ address[bit >> 3]) & mask) != 0) {
                return false;
            }
        }
        return true;
    }

    private static Rule rule(String text) {
        int slash = text.indexOf('/');
        if (slash >= 0) {
            InetAddress base = literal(text.substring(0, slash));
            String bits = text.substring(slash + 1);
            if (base == null
                    || !bits.matches("[0-9]{1,3}")
                    || Integer.parseInt(bits) > 8 * base.getAddress().length) {
                throw refused("'" + text + "' is not a network such as 10.0.0.0/8");
            }
            return new Rule.Network(base, Integer.parseInt(bits));
        }
        InetAddress address = literal(text);
        if (address != null) {
            return new Rule.Network(address, 8 * address.getAddress().length);
        }
        if (!text.matches("[A-Za-z0-9._*-]{1,255}")) {
            throw refused(Excerpt.of(text) + " is neither an address, a network nor a host name");
        }
        String quoted = "\\Q" + text.toLowerCase(Locale.ROOT).replace("*", "\\E[^/]*\\Q") + "\\E";
        return new Rule.Name(Pattern.compile(quoted));
    }

    private static @Nullable InetAddress literal(String text) {
        try {
            return InetAddress.ofLiteral(text);
        } catch (IllegalArgumentException e) {
            return null;
        }
    }

    private static ConnectorException refused(String problem) {
        return new ConnectorException("peer policy: " + problem);
    }
}
