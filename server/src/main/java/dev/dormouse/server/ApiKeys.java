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

    /** True if the request need not have a key, or has one. */
    boolean admit(Headers headers) {
        if (digests.isEmpty()) {
            return true;
        }
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
