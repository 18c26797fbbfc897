package dev.dormouse.model.tokenizer;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The 256 characters by which byte-level vocabularies spell bytes.
 *
 * <p>The scheme is GPT-2's: the printable characters of Latin-1 stand for themselves, and the other
 * 68 bytes, in order, for U+0100 and on.
 */
final class ByteAlphabet {
    private static final char[] CHAR_OF_BYTE = new char[256];
    private static final int[] BYTE_OF_CHAR = new int[256 + 68];

    static {
        Arrays.fill(BYTE_OF_CHAR, -1);
        char next = 256;
        for (int b = 0; b < 256; b++) {
            boolean printable =
                    (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
            char c = printable ? (char) b : next++;
            CHAR_OF_BYTE[b] = c;
            BYTE_OF_CHAR[c] = b;
        }
    }

    private ByteAlphabet() {}

    /** Spells bytes as a vocabulary does. */
    static String spell(byte[] bytes) {
        char[] spelled = new char[bytes.length];
        for (int i = 0; i < bytes.length; i++) {
            spelled[i] = CHAR_OF_BYTE[bytes[i] & 0xff];
        }
        return new String(spelled);
    }

    /** The bytes that a spelling stands for, or null when a character is outside the alphabet. */
    static byte @Nullable [] bytes(String spelled) {
        byte[] bytes = new byte[spelled.length()];
        for (int i = 0; i < bytes.length; i++) {
            char c = spelled.charAt(i);
            if (c >= BYTE_OF_CHAR.length || BYTE_OF_CHAR[c] < 0) {
                return null;
            }
            bytes[i] = (byte) BYTE_OF_CHAR[c];
        }
        return bytes;
    }
}
