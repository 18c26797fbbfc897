package dev.dormouse.server;

import java.net.InetAddress;
import java.net.UnknownHostException;
import org.jspecify.annotations.Nullable;

/**
 * Where an engine takes the calls that put it to sleep, wake, pause and resume it. A listener of
 * its own, since whoever may ask for completions need not be allowed to stop them.
 *
 * @param host address to bind
 * @param port port to bind; 0 takes a free one
 * @param token what each call must carry as {@code Authorization: Bearer}; null for nothing, which
 *     only a loopback address may have
 * @param alsoPublic the server's public listener takes these calls too, without the token, as
 *     vLLM's does in its development mode
 */
public record AdminConfig(String host, int port, @Nullable String token, boolean alsoPublic) {
    /** How far the default port is from the public one. */
    private static final int PORT_OFFSET = 10_000;

    /** Checks the ranges. */
    public AdminConfig {
        if (port < 0 || port > 65535) {
            throw new IllegalArgumentException(
                    "--admin-port is " + port + ", but must be between 0 and 65535");
        }
        if (token != null && token.isBlank()) {
            throw new IllegalArgumentException(
                    "the admin token is empty; give one, or none at all");
        }
        if (token == null && !isLoopback(host)) {
            throw new IllegalArgumentException(
                    "--admin-host is "
                            + host
                            + ", which others can reach: give a token in DORMOUSE_ADMIN_TOKEN, or bind a loopback address");
        }
    }

    /**
     * 10,000 above the public port, or below it where there is no room; a free one for a free one.
     */
    public static int defaultPort(int publicPort) {
        if (publicPort == 0) {
            return 0;
        }
        return publicPort + PORT_OFFSET <= 65535
                ? publicPort + PORT_OFFSET
                : publicPort - PORT_OFFSET;
    }

    private static boolean isLoopback(String host) {
        try {
            return InetAddress.getByName(host).isLoopbackAddress();
        } catch (UnknownHostException e) {
            throw new IllegalArgumentException(
                    "--admin-host is " + host + ", which has no address", e);
        }
    }
}
