package dev.dormouse.engine.core;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** Tells tokens from any others, so that no engine reads KV of others for them. */
final class TokenHash {
    /** Nobody finds two texts that share this much of SHA-256 by accident. */
    private static final int BYTES = 16;

    private TokenHash() {}

    /**
     * The first half of the SHA-256 of the first {@code count} token ids, each as four bytes, in
     * hexadecimal.
     */
    static String of(int[] tokens, int count) {
        ByteBuffer bytes = ByteBuffer.allocate(Math.multiplyExact(count, Integer.BYTES));
        bytes.asIntBuffer().put(tokens, 0, count);
        try {
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(bytes.array());
            return HexFormat.of().formatHex(hash, 0, BYTES);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
