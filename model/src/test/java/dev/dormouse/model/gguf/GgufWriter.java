package dev.dormouse.model.gguf;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Writes small GGUF files for tests, and wrong ones when told to: nothing is checked.
 *
 * <p>Numbers are written as given, so a test can declare counts, types and offsets that lie.
 */
public final class GgufWriter {
    private final Bytes entries = new Bytes();
    private final Bytes tensors = new Bytes();
    private final List<byte[]> data = new ArrayList<>();
    private long dataLength;
    private long entryCount;
    private long tensorCount;
    private int version = 3;
    private int alignment = 32;

    private static final class Bytes {
        private final ByteArrayOutputStream out = new ByteArrayOutputStream();

        void raw(byte[] bytes) {
            out.writeBytes(bytes);
        }

        void int8(int value) {
            out.write(value);
        }

        void int16(int value) {
            raw(order(2).putShort((short) value).array());
        }

        void int32(long value) {
            raw(order(4).putInt((int) value).array());
        }

        void int64(long value) {
            raw(order(8).putLong(value).array());
        }

        void string(String value) {
            byte[] encoded = value.getBytes(StandardCharsets.UTF_8);
            int64(encoded.length);
            raw(encoded);
        }

        private static ByteBuffer order(int size) {
            return ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
        }
    }

    /** Sets the version field, 3 at first. */
    public GgufWriter version(int number) {
        version = number;
        return this;
    }

    /** Pads by {@code bytes}, without an entry that says so. */
    public GgufWriter padTo(int bytes) {
        alignment = bytes;
        return this;
    }

    /** Raises the declared count of metadata entries without writing one. */
    public GgufWriter lieAboutEntries(long more) {
        entryCount += more;
        return this;
    }

    /** Raises the declared count of tensors without writing one. */
    public GgufWriter lieAboutTensors(long more) {
        tensorCount += more;
        return this;
    }

    /** An entry of any type from its raw value bytes. */
    public GgufWriter rawEntry(String key, int type, byte[] value) {
        entryCount++;
        entries.string(key);
        entries.int32(type);
        entries.raw(value);
        return this;
    }

    /** A uint8 (type 0) or int8 (type 1). */
    public GgufWriter int8(String key, boolean signed, int value) {
        return entry(key, signed ? 1 : 0, bytes -> bytes.int8(value));
    }

    /** A uint16 (type 2) or int16 (type 3). */
    public GgufWriter int16(String key, boolean signed, int value) {
        return entry(key, signed ? 3 : 2, bytes -> bytes.int16(value));
    }

    /** A uint32. */
    public GgufWriter uint32(String key, long value) {
        return entry(key, 4, bytes -> bytes.int32(value));
    }

    /** An int32. */
    public GgufWriter int32(String key, int value) {
        return entry(key, 5, bytes -> bytes.int32(value));
    }

    /** A float32. */
    public GgufWriter float32(String key, float value) {
        return entry(key, 6, bytes -> bytes.int32(Float.floatToRawIntBits(value)));
    }

    /** A bool from its raw byte. */
    public GgufWriter bool(String key, int value) {
        return entry(key, 7, bytes -> bytes.int8(value));
    }

    /** A string. */
    public GgufWriter string(String key, String value) {
        return entry(key, 8, bytes -> bytes.string(value));
    }

    /** A uint64 (type 10) or int64 (type 11). */
    public GgufWriter int64(String key, boolean signed, long value) {
        return entry(key, signed ? 11 : 10, bytes -> bytes.int64(value));
    }

    /** A float64. */
    public GgufWriter float64(String key, double value) {
        return entry(key, 12, bytes -> bytes.int64(Double.doubleToRawLongBits(value)));
    }

    /** An array of strings. */
    public GgufWriter strings(String key, List<String> values) {
        return array(key, 8, values.size(), bytes -> values.forEach(bytes::string));
    }

    /** An array of int32. */
    public GgufWriter int32s(String key, int... values) {
        return array(
                key,
                5,
                values.length,
                bytes -> {
                    for (int value : values) {
                        bytes.int32(value);
                    }
                });
    }

    /** An array of float32. */
    public GgufWriter float32s(String key, float... values) {
        return array(
                key,
                6,
                values.length,
                bytes -> {
                    for (float value : values) {
                        bytes.int32(Float.floatToRawIntBits(value));
                    }
                });
    }

    /** {@code depth} arrays of one element, one inside the other, around a uint8. */
    public GgufWriter nested(String key, int depth) {
        return entry(
                key,
                9,
                bytes -> {
                    for (int i = 1; i < depth; i++) {
                        bytes.int32(9);
                        bytes.int64(1);
                    }
                    bytes.int32(0);
                    bytes.int64(1);
                    bytes.int8(7);
                });
    }

    /** An array that declares a length other than it has. */
    public GgufWriter hollowArray(String key, int elementType, long declared) {
        return array(key, elementType, declared, bytes -> {});
    }

    /** A tensor at the next aligned offset, with its data. */
    public GgufWriter tensor(String name, TensorType type, byte[] bytes, long... shape) {
        long padding = -dataLength & (alignment - 1);
        long offset = dataLength + padding;
        data.add(new byte[(int) padding]);
        data.add(bytes);
        dataLength = offset + bytes.length;
        return tensorInfo(name, type.id(), offset, shape);
    }

    /** A tensor info without data. */
    public GgufWriter tensorInfo(String name, int type, long offset, long... shape) {
        tensorCount++;
        tensors.string(name);
        tensors.int32(shape.length);
        for (long extent : shape) {
            tensors.int64(extent);
        }
        tensors.int32(type);
        tensors.int64(offset);
        return this;
    }

    /** The file's bytes. */
    public byte[] toBytes() {
        Bytes all = new Bytes();
        all.raw("GGUF".getBytes(StandardCharsets.US_ASCII));
        all.int32(version);
        all.int64(tensorCount);
        all.int64(entryCount);
        all.raw(entries.out.toByteArray());
        all.raw(tensors.out.toByteArray());
        all.raw(new byte[-all.out.size() & (alignment - 1)]);
        data.forEach(all::raw);
        return all.out.toByteArray();
    }

    /** Writes the file and returns its path. */
    public Path write(Path path) {
        try {
            return Files.write(path, toBytes());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @FunctionalInterface
    private interface Part {
        void append(Bytes bytes);
    }

    private GgufWriter entry(String key, int type, Part value) {
        entryCount++;
        entries.string(key);
        entries.int32(type);
        value.append(entries);
        return this;
    }

    private GgufWriter array(String key, int elementType, long declared, Part values) {
        return entry(
                key,
                9,
                bytes -> {
                    bytes.int32(elementType);
                    bytes.int64(declared);
                    values.append(bytes);
                });
    }
}
