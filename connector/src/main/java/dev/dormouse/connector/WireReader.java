package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.msgpack.core.MessageInsufficientBufferException;
import org.msgpack.core.MessageIntegerOverflowException;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessagePackException;
import org.msgpack.core.MessageSizeException;
import org.msgpack.core.MessageUnpacker;
import org.msgpack.value.ValueType;

/**
 * Strict reader of msgpack bytes from a peer: each value must have exactly the wire type that is
 * asked for, and every size is checked against a limit and against what is left before anything of
 * that size is made.
 */
final class WireReader {
    private static final int MAX_DEPTH = 16;

    /** Elements of all arrays and maps of a message: each becomes an object here. */
    static final int MAX_ELEMENTS = 262_144;

    private static final MessagePack.UnpackerConfig STRICT =
            new MessagePack.UnpackerConfig()
                    .withAllowReadingStringAsBinary(false)
                    .withAllowReadingBinaryAsString(false)
                    .withActionOnMalformedString(CodingErrorAction.REPORT)
                    .withActionOnUnmappableString(CodingErrorAction.REPORT);

    private interface Step<T> {
        T take() throws IOException;
    }

    private final String what;
    private final int length;
    private final MessageUnpacker unpacker;
    private int elementsLeft = MAX_ELEMENTS;

    /**
     * A reader at the first byte.
     *
     * @param what the message's name, for errors
     */
    WireReader(String what, byte[] bytes, int maxBytes) {
        this.what = what;
        this.length = bytes.length;
        if (bytes.length > maxBytes) {
            throw fault(bytes.length + " bytes, limit " + maxBytes);
        }
        this.unpacker = STRICT.newUnpacker(bytes);
    }

    /** The number of entries of the map that starts here. */
    int mapSize(String field, int max) {
        return size(field, ValueType.MAP, max, unpacker::unpackMapHeader);
    }

    /** The number of elements of the array that starts here. */
    int arraySize(String field, int max) {
        return size(field, ValueType.ARRAY, max, unpacker::unpackArrayHeader);
    }

    /** A UTF-8 string. */
    String string(String field, int maxBytes) {
        require(field, ValueType.STRING);
        return guarded(
                field,
                () -> {
                    int bytes = unpacker.unpackRawStringHeader();
                    checkSize(field, bytes, maxBytes);
                    return decodeUtf8(unpacker.readPayload(bytes));
                });
    }

    /** A byte string. */
    byte[] binary(String field, int maxBytes) {
        require(field, ValueType.BINARY);
        return guarded(
                field,
                () -> {
                    int bytes = unpacker.unpackBinaryHeader();
                    checkSize(field, bytes, maxBytes);
                    return unpacker.readPayload(bytes);
                });
    }

    /** A byte string, or the bytes of a string. */
    byte[] binaryOrString(String field, int maxBytes) {
        return next(field) == ValueType.STRING
                ? string(field, maxBytes).getBytes(UTF_8)
                : binary(field, maxBytes);
    }

    /** An integer between the bounds, both included. */
    long integer(String field, long min, long max) {
        require(field, ValueType.INTEGER);
        long value = guarded(field, unpacker::unpackLong);
        if (value < min || value > max) {
            throw fault(field + " is " + value + ", not between " + min + " and " + max);
        }
        return value;
    }

    /** True, and past it, if nil stands here. */
    boolean nil() {
        return guarded("nil", unpacker::tryUnpackNil);
    }

    /** A float64. */
    double float64(String field) {
        require(field, ValueType.FLOAT);
        return guarded(field, unpacker::unpackDouble);
    }

    /** Integers between the bounds. */
    List<Long> integers(String field, int maxCount, long min, long max) {
        return list(field, maxCount, () -> integer(field, min, max));
    }

    /** Strings. */
    List<String> strings(String field, int maxCount, int maxBytes) {
        return list(field, maxCount, () -> string(field, maxBytes));
    }

    /** An array of whatever {@code element} reads. */
    <T> List<T> list(String field, int maxCount, Supplier<T> element) {
        int count = arraySize(field, maxCount);
        List<T> values = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            values.add(element.get());
        }
        return values;
    }

    /** Null for nil, otherwise what {@code value} reads. */
    <T> @Nullable T orNull(Supplier<T> value) {
        return nil() ? null : value.get();
    }

    /** Passes over one value of any type. */
    void skip(String field) {
        skip(field, 0);
    }

    /** Nothing may follow. */
    void end() {
        if (unpacker.getTotalReadBytes() != length) {
            throw fault(length - unpacker.getTotalReadBytes() + " bytes follow its end");
        }
    }

    /** An error about this message. */
    WireException fault(String problem) {
        return new WireException("decode " + what + ": " + problem);
    }

    private void skip(String field, int depth) {
        if (depth > MAX_DEPTH) {
            throw fault(field + " is nested deeper than " + MAX_DEPTH);
        }
        ValueType type = next(field);
        switch (type) {
            case ARRAY -> skipMany(field, arraySize(field, length), depth);
            case MAP -> skipMany(field, 2 * mapSize(field, length), depth);
            case STRING -> skipPayload(field, unpacker::unpackRawStringHeader);
            case BINARY -> skipPayload(field, unpacker::unpackBinaryHeader);
            case NIL, BOOLEAN, INTEGER, FLOAT, EXTENSION ->
                    guarded(
                            field,
                            () -> {
                                unpacker.skipValue();
                                return field;
                            });
        }
    }

    private void skipPayload(String field, Step<Integer> header) {
        int bytes = guarded(field, header);
        checkSize(field, bytes, length);
        var _ = guarded(field, () -> unpacker.readPayloadAsReference(bytes));
    }

    private void skipMany(String field, int count, int depth) {
        for (int i = 0; i < count; i++) {
            skip(field, depth + 1);
        }
    }

    private int size(String field, ValueType type, int max, Step<Integer> header) {
        require(field, type);
        int size = guarded(field, header);
        checkSize(field, size, max);
        elementsLeft -= type == ValueType.MAP ? 2 * size : size;
        if (elementsLeft < 0) {
            throw fault("more than " + MAX_ELEMENTS + " elements, with " + field);
        }
        return size;
    }

    private void checkSize(String field, int size, int max) {
        long left = length - unpacker.getTotalReadBytes();
        if (size > max || size > left) {
            throw fault(field + " has size " + size + ", limit " + Math.min(max, left));
        }
    }

    private void require(String field, ValueType type) {
        ValueType found = next(field);
        if (found != type) {
            throw fault(field + " is " + found + ", not " + type);
        }
    }

    private ValueType next(String field) {
        return guarded(field, () -> unpacker.getNextFormat().getValueType());
    }

    private <T> T guarded(String field, Step<T> step) {
        try {
            return step.take();
        } catch (MessagePackException | IOException e) {
            throw new WireException("decode " + what + ": " + field + " " + problem(e), e);
        }
    }

    private static String problem(Exception e) {
        return switch (e) {
            case MessageInsufficientBufferException _ -> "is cut short";
            case MessageSizeException _ -> "has a size of 2^31 or more";
            case MessageIntegerOverflowException _ -> "is 2^63 or more";
            case CharacterCodingException _ -> "is not UTF-8";
            default -> "is not MessagePack (" + e.getMessage() + ")";
        };
    }

    private static String decodeUtf8(byte[] bytes) throws IOException {
        return UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    }
}
