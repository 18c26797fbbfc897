package dev.dormouse.model.gguf;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The key-value part of a GGUF file, read on demand from the mapping.
 *
 * <p>A plain accessor throws {@link GgufException} when the key is missing; a {@code find} accessor
 * is empty then. Both throw it, naming the type that was found, when the value is of another kind.
 * All throw {@link IllegalStateException} once the file is closed. Safe from any thread.
 */
public final class GgufMetadata {
    private static final int MAX_STRING_BYTES = 1 << 24;
    private static final int MAX_ARRAY_ELEMENTS = 1 << 24;

    /**
     * Where a checked value lies.
     *
     * @param elementType the type of the elements of an array, else of the value
     * @param count elements of an array, else 1
     */
    record Entry(ValueType type, ValueType elementType, long position, long count) {
        String describe() {
            return type == ValueType.ARRAY
                    ? "an array of " + count + " " + elementType
                    : "a value of type " + type;
        }
    }

    private final MemorySegment bytes;
    private final String file;
    private final Map<String, Entry> entries;

    GgufMetadata(MemorySegment bytes, String file, Map<String, Entry> entries) {
        this.bytes = bytes;
        this.file = file;
        this.entries = Collections.unmodifiableMap(entries);
    }

    /** All keys in the order of the file. */
    public Set<String> keys() {
        return entries.keySet();
    }

    /** The string under {@code key}. */
    public String string(String key) {
        return findString(key).orElseThrow(() -> missing(key, "a string"));
    }

    /** The string under {@code key}, or empty when the key is missing. */
    public Optional<String> findString(String key) {
        @Nullable Entry entry = entries.get(key);
        if (entry == null) {
            return Optional.empty();
        }
        require(key, entry, entry.type == ValueType.STRING, "a string");
        return Optional.of(at(key, entry).string(named(key), MAX_STRING_BYTES));
    }

    /** The boolean under {@code key}. */
    public boolean bool(String key) {
        return findBool(key).orElseThrow(() -> missing(key, "a bool"));
    }

    /** The boolean under {@code key}, or empty when the key is missing. */
    public Optional<Boolean> findBool(String key) {
        @Nullable Entry entry = entries.get(key);
        if (entry == null) {
            return Optional.empty();
        }
        require(key, entry, entry.type == ValueType.BOOL, "a bool");
        byte value = at(key, entry).int8(named(key));
        require(key, entry, value == 0 || value == 1, "a bool of 0 or 1");
        return Optional.of(value == 1);
    }

    /** The integer of any width under {@code key}. */
    public long integer(String key) {
        return findInteger(key).orElseThrow(() -> missing(key, "an integer"));
    }

    /** The integer of any width under {@code key}, or empty when the key is missing. */
    public OptionalLong findInteger(String key) {
        @Nullable Entry entry = entries.get(key);
        if (entry == null) {
            return OptionalLong.empty();
        }
        require(key, entry, entry.type.isInteger(), "an integer");
        return OptionalLong.of(readInteger(at(key, entry), entry.type, key));
    }

    /** The integer under {@code key}, which must be from 1 to {@link Integer#MAX_VALUE}. */
    public int positiveInt(String key) {
        long value = integer(key);
        if (value < 1 || value > Integer.MAX_VALUE) {
            throw new GgufException(
                    "read metadata of %s: '%s' is %d, must be from 1 to %d"
                            .formatted(file, key, value, Integer.MAX_VALUE));
        }
        return (int) value;
    }

    /** The floating-point number of either width under {@code key}. */
    public double real(String key) {
        return findReal(key).orElseThrow(() -> missing(key, "a floating-point number"));
    }

    /** The floating-point number under {@code key}, or empty when the key is missing. */
    public OptionalDouble findReal(String key) {
        @Nullable Entry entry = entries.get(key);
        if (entry == null) {
            return OptionalDouble.empty();
        }
        require(key, entry, entry.type.isReal(), "a floating-point number");
        return OptionalDouble.of(readReal(at(key, entry), entry.type, key));
    }

    /** The array of strings under {@code key}. */
    public List<String> strings(String key) {
        Entry entry = array(key, "an array of strings");
        require(key, entry, entry.elementType == ValueType.STRING, "an array of strings");
        Cursor cursor = at(key, entry);
        List<String> values = new ArrayList<>(arrayLength(key, entry));
        String what = "a string of " + named(key);
        for (long i = 0; i < entry.count; i++) {
            values.add(cursor.string(what, MAX_STRING_BYTES));
        }
        return Collections.unmodifiableList(values);
    }

    /** The array of integers of any one width under {@code key}. */
    public long[] integers(String key) {
        Entry entry = array(key, "an array of integers");
        require(key, entry, entry.elementType.isInteger(), "an array of integers");
        Cursor cursor = at(key, entry);
        long[] values = new long[arrayLength(key, entry)];
        for (int i = 0; i < values.length; i++) {
            values[i] = readInteger(cursor, entry.elementType, key);
        }
        return values;
    }

    /** The array of floating-point numbers of either width under {@code key}. */
    public double[] reals(String key) {
        Entry entry = array(key, "an array of floating-point numbers");
        require(key, entry, entry.elementType.isReal(), "an array of floating-point numbers");
        Cursor cursor = at(key, entry);
        double[] values = new double[arrayLength(key, entry)];
        for (int i = 0; i < values.length; i++) {
            values[i] = readReal(cursor, entry.elementType, key);
        }
        return values;
    }

    private Entry array(String key, String wanted) {
        @Nullable Entry entry = entries.get(key);
        if (entry == null) {
            throw missing(key, wanted);
        }
        require(key, entry, entry.type == ValueType.ARRAY, wanted);
        return entry;
    }

    /** The elements are all in the file, but on the heap they may take several times their size. */
    private int arrayLength(String key, Entry entry) {
        if (entry.count > MAX_ARRAY_ELEMENTS) {
            throw new GgufException(
                    "read metadata of %s: '%s' has %d elements, the limit is %d"
                            .formatted(file, key, entry.count, MAX_ARRAY_ELEMENTS));
        }
        return (int) entry.count;
    }

    /** All of the file's values are known to be there, so {@code key} will do for a message. */
    private long readInteger(Cursor cursor, ValueType type, String key) {
        return switch (type) {
            case UINT8 -> Byte.toUnsignedLong(cursor.int8(key));
            case INT8 -> cursor.int8(key);
            case UINT16 -> Short.toUnsignedLong(cursor.int16(key));
            case INT16 -> cursor.int16(key);
            case UINT32 -> cursor.uint32(key);
            case INT32 -> cursor.int32(key);
            case INT64 -> cursor.int64(key);
            case UINT64 -> {
                long value = cursor.int64(key);
                if (value < 0) {
                    throw new GgufException(
                            "read metadata of %s: '%s' is %s, the limit is %d"
                                    .formatted(
                                            file,
                                            key,
                                            Long.toUnsignedString(value),
                                            Long.MAX_VALUE));
                }
                yield value;
            }
            case FLOAT32, FLOAT64, BOOL, STRING, ARRAY ->
                    throw new AssertionError("no integer type: " + type);
        };
    }

    private static double readReal(Cursor cursor, ValueType type, String key) {
        return type == ValueType.FLOAT32
                ? Float.intBitsToFloat(cursor.int32(key))
                : Double.longBitsToDouble(cursor.int64(key));
    }

    private Cursor at(String key, Entry entry) {
        if (!bytes.scope().isAlive()) {
            throw new IllegalStateException(
                    "read metadata of " + file + ": '" + key + "' was asked after close");
        }
        return new Cursor(bytes, file, entry.position);
    }

    private void require(String key, Entry entry, boolean holds, String wanted) {
        if (!holds) {
            throw new GgufException(
                    "read metadata of %s: '%s' is %s, must be %s"
                            .formatted(file, key, entry.describe(), wanted));
        }
    }

    private GgufException missing(String key, String wanted) {
        return new GgufException(
                "read metadata of %s: '%s' is missing, must be %s".formatted(file, key, wanted));
    }

    private static String named(String key) {
        return "metadata '" + key + "'";
    }
}
