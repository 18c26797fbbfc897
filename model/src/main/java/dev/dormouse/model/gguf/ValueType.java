package dev.dormouse.model.gguf;

import java.util.Locale;

/** The metadata value types, in the order of their numbers in the GGUF specification. */
enum ValueType {
    UINT8(1),
    INT8(1),
    UINT16(2),
    INT16(2),
    UINT32(4),
    INT32(4),
    FLOAT32(4),
    BOOL(1),
    STRING(0),
    ARRAY(0),
    UINT64(8),
    INT64(8),
    FLOAT64(8);

    private static final ValueType[] BY_ID = values();

    private final int sizeBytes;

    ValueType(int sizeBytes) {
        this.sizeBytes = sizeBytes;
    }

    /** Bytes of one value; 0 for strings and arrays, whose size is in the file. */
    int sizeBytes() {
        return sizeBytes;
    }

    boolean isInteger() {
        return switch (this) {
            case UINT8, INT8, UINT16, INT16, UINT32, INT32, UINT64, INT64 -> true;
            case FLOAT32, FLOAT64, BOOL, STRING, ARRAY -> false;
        };
    }

    boolean isReal() {
        return this == FLOAT32 || this == FLOAT64;
    }

    static ValueType ofId(long id, String file, String key) {
        if (id >= BY_ID.length) {
            throw new GgufException(
                    "open %s: metadata '%s' has value type %d, the highest known is %d"
                            .formatted(file, key, id, BY_ID.length - 1));
        }
        return BY_ID[(int) id];
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
