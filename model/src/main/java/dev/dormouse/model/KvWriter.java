package dev.dormouse.model;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Knows where a token lies in a layer's region of the KV cache, and writes it there. */
final class KvWriter {
    private static final ValueLayout.OfShort ELEMENT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private KvWriter() {}

    /** The offset of a token's K, which its V follows, for one KV head. */
    static long offset(KvCacheShape shape, int[] blocks, int position, int kvHead) {
        int slot = position % shape.blockTokens();
        long tokenBytes = 2L * shape.headDimension() * shape.type().bytes();
        return blocks[position / shape.blockTokens()] * shape.blockBytes()
                + ((long) kvHead * shape.blockTokens() + slot) * tokenBytes;
    }

    /** Writes K, or V, of one head. */
    static void write(MemorySegment layer, long offset, KvType type, float[] from, int at, int n) {
        for (int i = 0; i < n; i++) {
            short element =
                    switch (type) {
                        case F16 -> Float.floatToFloat16(from[at + i]);
                        case BF16 -> narrow(from[at + i]);
                    };
            layer.set(ELEMENT, offset + (long) type.bytes() * i, element);
        }
    }

    /** Rounds to the nearest, ties to even; a NaN stays one. */
    private static short narrow(float value) {
        int bits = Float.floatToIntBits(value);
        return (short)
                (Float.isNaN(value) ? bits >>> 16 : (bits + 0x7FFF + ((bits >>> 16) & 1)) >>> 16);
    }
}
