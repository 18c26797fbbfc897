package dev.dormouse.server;

import java.util.List;

/**
 * Where an engine's HTTP server listens, and what it accepts.
 *
 * @param host address to bind
 * @param port port to bind; 0 takes a free one
 * @param maxBodyBytes the largest request body; a larger one is answered with 413
 * @param maxRequestsInFlight completions that are read or served at a time; more are refused with
 *     503
 * @param legs a request for another leg is refused
 * @param takesPriorities whether a request may have another priority than 0
 * @param admin where sleep and the like are taken
 * @param apiKeys keys one of which {@code /v1/} asks for; none lets everybody in
 * @param version what {@code /version} tells
 */
public record ServerConfig(
        String host,
        int port,
        long maxBodyBytes,
        int maxRequestsInFlight,
        ServedLegs legs,
        boolean takesPriorities,
        AdminConfig admin,
        List<String> apiKeys,
        String version) {
    /** Large enough for any prompt that a model's context can hold. */
    public static final long DEFAULT_MAX_BODY_BYTES = 16L << 20;

    /** Checks the ranges. */
    public ServerConfig {
        apiKeys = List.copyOf(apiKeys);
        if (port < 0 || port > 65535) {
            throw new IllegalArgumentException(
                    "--port is " + port + ", but must be between 0 and 65535");
        }
        if (maxBodyBytes < 1) {
            throw new IllegalArgumentException(
                    "the body limit is " + maxBodyBytes + " bytes, but must be at least 1");
        }
        if (maxRequestsInFlight < 1) {
            throw new IllegalArgumentException(
                    "the limit of requests in flight is "
                            + maxRequestsInFlight
                            + ", but must be at least 1");
        }
        if (apiKeys.stream().anyMatch(String::isBlank)) {
            throw new IllegalArgumentException("an API key is blank; give one with --api-key");
        }
    }

    /** Prints no key. */
    @Override
    public String toString() {
        return "ServerConfig[%s:%d, %d bytes, %d in flight, %s, %d keys]"
                .formatted(host, port, maxBodyBytes, maxRequestsInFlight, legs, apiKeys.size());
    }
}
