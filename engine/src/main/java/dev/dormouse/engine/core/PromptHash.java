package dev.dormouse.engine.core;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;

/** Tells a prompt from any other, so that no engine reads another prompt's KV for it. */
final class PromptHash {
    /** Nobody finds two prompts that share this much of SHA-256 by accident. */
    private static final int BYTES = 16;

    private PromptHash() {}

    /** The first half of the SHA-256 of the token ids, each as four bytes, in hexadecimal. */
    static String of(List<Integer> tokens) {
        ByteBuffer bytes = ByteBuffer.allocate(Math.multiplyExact(tokens.size(), Integer.BYTES));
        tokens.forEach(bytes::putInt);
        try {
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(bytes.array());
            return HexFormat.of().formatHex(hash, 0, BYTES);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
