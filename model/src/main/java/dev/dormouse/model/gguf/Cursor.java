package dev.dormouse.model.gguf;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;

/**
 * Reads little-endian fields from front to back and never beyond the end of the mapping.
 *
 * <p>Used by one thread.
 */
final class Cursor {
    private static final ValueLayout.OfShort SHORT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt INT =
            ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong LONG =
            ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final char REPLACEMENT = '\ufffd';

    private final MemorySegment bytes;
    private final String file;
    private long position;

    Cursor(MemorySegment bytes, String file, long position) {
        this.bytes = bytes;
        this.file = file;
        this.position = position;
    }

    String file() {
        return file;
    }

    long position() {
        return position;
    }

    long remaining() {
        return bytes.byteSize() - position;
    }

    byte int8(String what) {
        return bytes.get(ValueLayout.JAVA_BYTE, advance(1, what));
    }

    short int16(String what) {
        return bytes.get(SHORT, advance(Short.BYTES, what));
    }

    int int32(String what) {
        return bytes.get(INT, advance(Integer.BYTES, what));
    }

    long uint32(String what) {
        return Integer.toUnsignedLong(int32(what));
    }

    long int64(String what) {
        return bytes.get(LONG, advance(Long.BYTES, what));
    }

    /**
     * Reads an unsigned 64-bit count of things that take at least {@code minimumBytes} each, and
     * refuses one that the rest of the file cannot hold.
     */
    long count(String what, long minimumBytes) {
        long count = int64(what);
        if (count < 0 || count > remaining() / minimumBytes) {
            throw new GgufException(
                    "read %s: %s is %s, but only %d bytes follow and each takes at least %d"
                            .formatted(
                                    file,
                                    what,
                                    Long.toUnsignedString(count),
                                    remaining(),
                                    minimumBytes));
        }
        return count;
    }

    void skip(long length, String what) {
        advance(length, what);
    }

    void skipString(String what) {
        skip(length(what), what);
    }

    /** Reads a name: a length-prefixed string of 1 to {@code limitBytes} bytes. */
    String name(String what, int limitBytes) {
        String name = string(what, limitBytes);
        if (name.isEmpty()) {
            throw new GgufException("read %s: %s is empty".formatted(file, what));
        }
        return name;
    }

    /** Reads a length-prefixed string of at most {@code limitBytes} bytes. */
    String string(String what, int limitBytes) {
        long length = length(what);
        if (length > limitBytes) {
            throw new GgufException(
                    "read %s: %s at byte %d is %d bytes long, the limit is %d"
                            .formatted(file, what, position, length, limitBytes));
        }
        long start = advance(length, what);
        byte[] encoded = bytes.asSlice(start, length).toArray(ValueLayout.JAVA_BYTE);
        String text = new String(encoded, StandardCharsets.UTF_8);
        return text.indexOf(REPLACEMENT) < 0 ? text : decodeStrictly(encoded, what, start);
    }

    /** For what is malformed, or has a replacement character of its own. */
    private String decodeStrictly(byte[] encoded, String what, long start) {
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .onMalformedInput(CodingErrorAction.REPORT)
                    .onUnmappableCharacter(CodingErrorAction.REPORT)
                    .decode(ByteBuffer.wrap(encoded))
                    .toString();
        } catch (CharacterCodingException e) {
            throw new GgufException(
                    "read %s: %s at byte %d is not UTF-8".formatted(file, what, start), e);
        }
    }

    /** A vocabulary has many strings: words for messages are put together only where one is due. */
    private long length(String what) {
        long left = remaining() - Long.BYTES;
        boolean fits = left >= 0 && Long.compareUnsigned(bytes.get(LONG, position), left) <= 0;
        return fits ? int64(what) : count("the length of " + what, 1);
    }

    private long advance(long length, String what) {
        if (length > remaining()) {
            throw new GgufException(
                    "read %s: the file ends inside %s: %d bytes needed at byte %d of %d"
                            .formatted(file, what, length, position, bytes.byteSize()));
        }
        long start = position;
        position += length;
        return start;
    }
}
