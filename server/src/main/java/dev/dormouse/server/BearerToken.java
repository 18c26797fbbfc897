package dev.dormouse.server;

import io.helidon.http.HeaderNames;
import io.helidon.webserver.http.FilterChain;
import io.helidon.webserver.http.RoutingRequest;
import io.helidon.webserver.http.RoutingResponse;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;

/** Lets only those calls pass that carry a token. Immutable. */
final class BearerToken {
    private static final String SCHEME = "Bearer ";

    private final byte[] token;

    BearerToken(String token) {
        this.token = token.getBytes(StandardCharsets.UTF_8);
    }

    /**
     * A filter of a listener.
     *
     * @throws ApiException 401 if the token is missing or wrong
     */
    void check(FilterChain chain, RoutingRequest request, RoutingResponse response) {
        String given = request.headers().first(HeaderNames.AUTHORIZATION).orElse("");
        if (!isRight(given)) {
            throw ApiException.of(
                    401,
                    "unauthorized",
                    (given.isEmpty() ? "the token is missing" : "the token is wrong")
                            + "; send it as `Authorization: Bearer TOKEN`");
        }
        chain.proceed();
    }

    /** In a time that does not tell how much of it is right. */
    private boolean isRight(String header) {
        return header.regionMatches(true, 0, SCHEME, 0, SCHEME.length())
                && MessageDigest.isEqual(
                        token, header.substring(SCHEME.length()).getBytes(StandardCharsets.UTF_8));
    }
}
