package dev.dormouse.server;

import io.helidon.http.HeaderNames;
import io.helidon.http.Headers;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/**
 * The keys that open an engine's API. A comparison takes the same time however much of a key is
 * right, and whichever key it is. Immutable.
 */
final class ApiKeys {
    private static final String SCHEME = "bearer ";

    private final List<byte[]> digests;

    /** Without any key everybody is let in. */
    ApiKeys(List<String> keys) {
        this.digests = keys.stream().map(ApiKeys::digest).toList();
    }

    /**
     * Lets a request pass.
     *
     * @throws ApiException 401 if it needs a key and has none of them
     */
    void require(Headers headers) {
        if (!digests.isEmpty() && !hasKey(headers)) {
            throw ApiException.of(
                    401, "invalid_api_key", "this needs a key: send `Authorization: Bearer KEY`");
        }
    }

    private boolean hasKey(Headers headers) {
        Optional<String> given = headers.first(HeaderNames.AUTHORIZATION);
        if (given.isEmpty() || !given.get().toLowerCase(Locale.ROOT).startsWith(SCHEME)) {
            return false;
        }
        byte[] digest = digest(given.get().substring(SCHEME.length()).strip());
        boolean known = false;
        for (byte[] key : digests) {
            known |= MessageDigest.isEqual(key, digest);
        }
        return known;
    }

    private static byte[] digest(String key) {
        try {
            return MessageDigest.getInstance("SHA-256")
                    .digest(key.getBytes(StandardCharsets.UTF_8));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }
}
