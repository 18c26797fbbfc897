package dev.dormouse.connector;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.regex.Pattern;

/**
 * Where an engine's side channel listens.
 *
 * @param host name or literal address, IPv6 without brackets
 * @param port TCP port; 0, where a listener is to be opened, stands for any free one
 */
public record SideChannelAddress(String host, int port) {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    /** Only what host names and literals consist of. */
    private static final Pattern HOST = Pattern.compile("[A-Za-z0-9._:%-]{1,255}");

    /** Checks host and port. */
    public SideChannelAddress {
        if (!isValid(host, port)) {
            throw new ConnectorException(
                    "side channel address: host "
                            + Excerpt.of(host)
                            + " port "
                            + port
                            + "; a host is a name or an address, a port is at most 65535");
        }
    }

    static boolean isValid(String host, int port) {
        return HOST.matcher(host).matches() && port >= 0 && port <= 65_535;
    }

    /** True if the host names every interface instead of one that can be reached. */
    static boolean isWildcard(String host) {
        if (host.isEmpty() || host.equals("*")) {
            return true;
        }
        if (host.matches("[0.:]+")) {
            return true;
        }
        try {
            return InetAddress.ofLiteral(host).isAnyLocalAddress(); // such as ::ffff:0.0.0.0
        } catch (IllegalArgumentException e) {
            return false; // a name
        }
    }

    /**
     * Makes sure that the name of this host does not stand for every interface here. A name that
     * only peers can look up is allowed.
     *
     * @throws ConnectorException if it does
     */
    static void requireReachable(String host, NameResolver.Lookup lookup) {
        try {
            for (InetAddress address : lookup.addresses(host)) {
                if (address.isAnyLocalAddress()) {
                    throw new ConnectorException(
                            "side channel: peers cannot reach "
                                    + Excerpt.of(host)
                                    + ", which is the wildcard address "
                                    + address.getHostAddress()
                                    + "; advertise one of this host's addresses");
                }
            }
        } catch (UnknownHostException e) {
            LOG.log(
                    System.Logger.Level.INFO,
                    "side channel: the advertised host {0} is not known here",
                    host);
        }
    }

    /**
     * All addresses of the host, the preferred one first. May ask a name server.
     *
     * @throws UnknownHostException if the host has no address
     */
    List<InetAddress> resolve() throws UnknownHostException {
        return List.of(InetAddress.getAllByName(host));
    }

    @Override
    public String toString() {
        return (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
    }
}
