package dev.dormouse.nixl;

import java.util.Arrays;

/**
 * Blocks of memory, local or a peer's, in the order in which indices count them. Immutable; kept as
 * runs of equal, equally spaced blocks, so that a pool of any size costs a few numbers.
 */
public final class BlockList {
    /** The most blocks a list may hold. */
    public static final int MAX_BLOCKS = 1 << 24;

    private static final int FIELDS = 5;
    private static final long MIXED = -1;

    private final MemoryType type;
    private final long[] runs;
    private final int size;
    private final long uniformLengthBytes;

    private BlockList(MemoryType type, long[] runs, int size) {
        this.type = type;
        this.runs = runs;
        this.size = size;
        this.uniformLengthBytes = uniformLength(runs);
    }

    /** Starts an empty list of one kind of memory. */
    public static Builder builder(MemoryType type) {
        return new Builder(type);
    }

    /** The kind of memory. */
    public MemoryType type() {
        return type;
    }

    /** How many blocks. */
    public int size() {
        return size;
    }

    /** Receives each run of blocks. */
    @FunctionalInterface
    interface RunVisitor {
        void run(long address, long strideBytes, long lengthBytes, int count, long deviceId);
    }

    void forEachRun(RunVisitor visitor) {
        for (int i = 0; i < runs.length; i += FIELDS) {
            visitor.run(runs[i], runs[i + 1], runs[i + 2], (int) runs[i + 3], runs[i + 4]);
        }
    }

    /** Lengths by index, cheap when all are equal. */
    Lengths lengths() {
        if (uniformLengthBytes != MIXED) {
            return new Lengths(size, uniformLengthBytes, null);
        }
        long[] each = new long[size];
        int[] next = {0};
        forEachRun(
                (address, stride, length, count, device) -> {
                    Arrays.fill(each, next[0], next[0] + count, length);
                    next[0] += count;
                });
        return new Lengths(size, MIXED, each);
    }

    @Override
    public String toString() {
        return "BlockList[type=" + type + ", size=" + size + ", runs=" + runs.length / FIELDS + "]";
    }

    private static long uniformLength(long[] runs) {
        long length = runs[2];
        for (int i = FIELDS; i < runs.length; i += FIELDS) {
            if (runs[i + 2] != length) {
                return MIXED;
            }
        }
        return length;
    }

    /** Collects blocks; each must have a length and fit into the address space. */
    public static final class Builder {
        private final MemoryType type;
        private long[] runs = new long[FIELDS];
        private int used;
        private long size;

        private Builder(MemoryType type) {
            this.type = type;
        }

        /**
         * Adds one block.
         *
         * @param address where it starts, in its owner's address space
         * @param deviceId as registered, see {@link MemoryRange#deviceId()}
         */
        public Builder add(long address, long lengthBytes, long deviceId) {
            return addStrided(address, lengthBytes, lengthBytes, 1, deviceId);
        }

        /**
         * Adds {@code count} blocks of equal length, at {@code address}, {@code address +
         * strideBytes}, and so on.
         */
        public Builder addStrided(
                long address, long strideBytes, long lengthBytes, int count, long deviceId) {
            if (address < 0 || strideBytes <= 0 || lengthBytes <= 0 || count <= 0 || deviceId < 0) {
                throw refused("a value is not positive", address, strideBytes, lengthBytes, count);
            }
            if (size + count > MAX_BLOCKS) {
                throw refused(
                        "more than " + MAX_BLOCKS + " blocks",
                        address,
                        strideBytes,
                        lengthBytes,
                        count);
            }
            long spanBytes;
            try {
                spanBytes = Math.addExact(Math.multiplyExact(strideBytes, count - 1L), lengthBytes);
                Math.addExact(address, spanBytes);
            } catch (ArithmeticException e) {
                throw refused("beyond the address space", address, strideBytes, lengthBytes, count);
            }
            if (used == runs.length) {
                runs = Arrays.copyOf(runs, 2 * runs.length);
            }
            runs[used] = address;
            runs[used + 1] = strideBytes;
            runs[used + 2] = lengthBytes;
            runs[used + 3] = count;
            runs[used + 4] = deviceId;
            used += FIELDS;
            size += count;
            return this;
        }

        /** The list; at least one block must have been added. */
        public BlockList build() {
            if (size == 0) {
                throw new IllegalStateException("build block list failed: it is empty");
            }
            return new BlockList(type, Arrays.copyOf(runs, used), (int) size);
        }

        private static IllegalArgumentException refused(
                String reason, long address, long strideBytes, long lengthBytes, int count) {
            return new IllegalArgumentException(
                    "add blocks refused: %s: address=0x%x strideBytes=%d lengthBytes=%d count=%d"
                            .formatted(reason, address, strideBytes, lengthBytes, count));
        }
    }
}
