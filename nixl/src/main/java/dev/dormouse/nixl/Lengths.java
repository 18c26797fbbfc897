package dev.dormouse.nixl;

import org.jspecify.annotations.Nullable;

/** The lengths of a list's blocks, for checks before a transfer is made. */
final class Lengths {
    private final int size;
    private final long uniformBytes;
    private final long @Nullable [] each;

    /**
     * @param uniformBytes the length of every block, when {@code each} is null
     */
    Lengths(int size, long uniformBytes, long @Nullable [] each) {
        this.size = size;
        this.uniformBytes = uniformBytes;
        this.each = each;
    }

    int size() {
        return size;
    }

    long at(int index) {
        return each == null ? uniformBytes : each[index];
    }

    /**
     * Checks that the pairs name existing blocks of equal length.
     *
     * @return bytes in all
     * @throws IllegalArgumentException naming the first pair that does not
     */
    static long checkPairs(Lengths local, int[] localIndices, Lengths remote, int[] remoteIndices) {
        if (localIndices.length == 0 || localIndices.length != remoteIndices.length) {
            throw new IllegalArgumentException(
                    "create transfer refused: local indices=%d, remote indices=%d must be equal and positive"
                            .formatted(localIndices.length, remoteIndices.length));
        }
        checkRange("local", local.size, localIndices);
        checkRange("remote", remote.size, remoteIndices);
        if (local.each == null && remote.each == null) {
            checkLength(0, local.uniformBytes, remote.uniformBytes);
            return local.uniformBytes * localIndices.length;
        }
        long totalBytes = 0;
        for (int i = 0; i < localIndices.length; i++) {
            long length = local.at(localIndices[i]);
            checkLength(i, length, remote.at(remoteIndices[i]));
            totalBytes += length;
        }
        return totalBytes;
    }

    /** As above for whole lists, pair by pair. */
    static long checkPairs(Lengths local, Lengths remote) {
        if (local.size != remote.size) {
            throw new IllegalArgumentException(
                    "create transfer refused: local blocks=%d and remote blocks=%d differ"
                            .formatted(local.size, remote.size));
        }
        long totalBytes = 0;
        for (int i = 0; i < local.size; i++) {
            checkLength(i, local.at(i), remote.at(i));
            totalBytes += local.at(i);
        }
        return totalBytes;
    }

    private static void checkRange(String side, int size, int[] indices) {
        for (int i = 0; i < indices.length; i++) {
            if (indices[i] < 0 || indices[i] >= size) {
                throw new IllegalArgumentException(
                        "create transfer refused: %s index %d at position %d is not within 0 and %d"
                                .formatted(side, indices[i], i, size - 1));
            }
        }
    }

    private static void checkLength(int position, long localBytes, long remoteBytes) {
        if (localBytes != remoteBytes) {
            throw new IllegalArgumentException(
                    "create transfer refused: lengths at position %d differ: local=%d remote=%d"
                            .formatted(position, localBytes, remoteBytes));
        }
    }
}
