package dev.dormouse.router;

import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * Settings of a {@link Router}. Immutable; validated by the constructor.
 *
 * @param host address to listen on
 * @param port port to listen on; 0 picks a free one
 * @param prefillEngines base URLs of the prefill engines, at least one
 * @param decodeEngines base URLs of the decode engines, at least one
 * @param connectTimeout bound of a TCP connect to an engine, and of a health check
 * @param prefillTimeout bound of each wait for a prefill engine: until its answer starts, and until
 *     it is whole
 * @param decodeTimeout longest silence of a decode engine: before its answer starts and between two
 *     pieces of it
 * @param clientTimeout bound of every wait for a client: for its next request, its whole body, or
 *     room to write
 * @param healthInterval pause between two health checks of an engine
 * @param maxBodyBytes largest request body, and largest answer of a prefill engine; at most 1 GiB
 * @param maxRequestsInFlight completions served at a time; more are refused with 503
 * @param forwardLastTurn whether a client's {@code kv_transfer_params}, as a decode engine gave
 *     them with the last turn, go to the prefill engine. For trusted clients only: they choose
 *     which engine's memory is read
 */
public record RouterConfig(
        String host,
        int port,
        List<URI> prefillEngines,
        List<URI> decodeEngines,
        Duration connectTimeout,
        Duration prefillTimeout,
        Duration decodeTimeout,
        Duration clientTimeout,
        Duration healthInterval,
        int maxBodyBytes,
        int maxRequestsInFlight,
        boolean forwardLastTurn) {
    private static final int MAX_BODY_BYTES = 1 << 30;

    /**
     * Checks and copies.
     *
     * @throws RouterException naming the setting, its value and what is allowed
     */
    public RouterConfig {
        prefillEngines = baseUrls("prefill", prefillEngines);
        decodeEngines = baseUrls("decode", decodeEngines);
        if (port < 0 || port > 65535) {
            throw new RouterException("router port " + port + " is not within 0..65535");
        }
        positive("connect timeout", connectTimeout);
        positive("prefill timeout", prefillTimeout);
        positive("decode timeout", decodeTimeout);
        positive("client timeout", clientTimeout);
        positive("health interval", healthInterval);
        positive("body limit in bytes", maxBodyBytes);
        if (maxBodyBytes > MAX_BODY_BYTES) {
            throw new RouterException(
                    "router's body limit " + maxBodyBytes + " is above " + MAX_BODY_BYTES);
        }
        positive("limit of requests in flight", maxRequestsInFlight);
    }

    /** A builder with every default set and no engine. */
    public static Builder builder() {
        return new Builder();
    }

    private static List<URI> baseUrls(String role, List<URI> urls) {
        if (urls.isEmpty()) {
            throw new RouterException("router has no " + role + " engine: name at least one URL");
        }
        return urls.stream().map(url -> baseUrl(role, url)).toList();
    }

    private static URI baseUrl(String role, URI url) {
        String scheme = String.valueOf(url.getScheme());
        if (!(scheme.equals("http") || scheme.equals("https"))
                || url.getHost() == null
                || url.getRawUserInfo() != null
                || url.getRawQuery() != null
                || url.getRawFragment() != null) {
            throw new RouterException(
                    role + " engine URL " + url + " is not of the form http://host:port[/path]");
        }
        String text = url.toString();
        return text.endsWith("/") ? URI.create(text.substring(0, text.length() - 1)) : url;
    }

    private static void positive(String what, Duration value) {
        if (value.isNegative() || value.isZero()) {
            throw new RouterException("router's " + what + " " + value + " is not positive");
        }
    }

    private static void positive(String what, int value) {
        if (value <= 0) {
            throw new RouterException("router's " + what + " " + value + " is not positive");
        }
    }

    /** Collects settings. Not thread-safe. */
    public static final class Builder {
        private String host = "127.0.0.1";
        private int port = 8000;
        private final List<URI> prefillEngines = new ArrayList<>();
        private final List<URI> decodeEngines = new ArrayList<>();
        private Duration connectTimeout = Duration.ofSeconds(5);
        private Duration prefillTimeout = Duration.ofMinutes(10);
        private Duration decodeTimeout = Duration.ofMinutes(10);
        private Duration clientTimeout = Duration.ofMinutes(1);
        private Duration healthInterval = Duration.ofSeconds(1);
        private int maxBodyBytes = 16 << 20;
        private int maxRequestsInFlight = 1024;
        private boolean forwardLastTurn;

        private Builder() {}

        /** Default 127.0.0.1. */
        public Builder host(String value) {
            host = value;
            return this;
        }

        /** Default 8000. */
        public Builder port(int value) {
            port = value;
            return this;
        }

        /** Adds a prefill engine. */
        public Builder prefillEngine(URI baseUrl) {
            prefillEngines.add(baseUrl);
            return this;
        }

        /** Adds a decode engine. */
        public Builder decodeEngine(URI baseUrl) {
            decodeEngines.add(baseUrl);
            return this;
        }

        /** Default 5 seconds. */
        public Builder connectTimeout(Duration value) {
            connectTimeout = value;
            return this;
        }

        /** Default 10 minutes. */
        public Builder prefillTimeout(Duration value) {
            prefillTimeout = value;
            return this;
        }

        /** Default 10 minutes. */
        public Builder decodeTimeout(Duration value) {
            decodeTimeout = value;
            return this;
        }

        /** Default 1 minute. */
        public Builder clientTimeout(Duration value) {
            clientTimeout = value;
            return this;
        }

        /** Default 1 second. */
        public Builder healthInterval(Duration value) {
            healthInterval = value;
            return this;
        }

        /** Default 16 MiB. */
        public Builder maxBodyBytes(int value) {
            maxBodyBytes = value;
            return this;
        }

        /** Default 1024. */
        public Builder maxRequestsInFlight(int value) {
            maxRequestsInFlight = value;
            return this;
        }

        /** Default false. */
        public Builder forwardLastTurn(boolean value) {
            forwardLastTurn = value;
            return this;
        }

        /**
         * The checked settings.
         *
         * @throws RouterException naming the setting, its value and what is allowed
         */
        public RouterConfig build() {
            return new RouterConfig(
                    host,
                    port,
                    prefillEngines,
                    decodeEngines,
                    connectTimeout,
                    prefillTimeout,
                    decodeTimeout,
                    clientTimeout,
                    healthInterval,
                    maxBodyBytes,
                    maxRequestsInFlight,
                    forwardLastTurn);
        }
    }
}
