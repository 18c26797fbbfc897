package dev.dormouse.cuda;

/**
 * How many blocks of how many threads. Limits of every device since 3.0 (CUDA C++ Programming
 * Guide, "Technical Specifications per Compute Capability").
 */
public record LaunchShape(int gridX, int gridY, int gridZ, int blockX, int blockY, int blockZ) {
    private static final int MAX_GRID_YZ = 65_535;
    private static final int MAX_BLOCK_XY = 1024;
    private static final int MAX_BLOCK_Z = 64;

    /** Refuses what no device can run. */
    public LaunchShape {
        requireWithin("gridX", gridX, Integer.MAX_VALUE);
        requireWithin("gridY", gridY, MAX_GRID_YZ);
        requireWithin("gridZ", gridZ, MAX_GRID_YZ);
        requireWithin("blockX", blockX, MAX_BLOCK_XY);
        requireWithin("blockY", blockY, MAX_BLOCK_XY);
        requireWithin("blockZ", blockZ, MAX_BLOCK_Z);
    }

    /** One dimension. */
    public static LaunchShape of(int blocks, int threadsPerBlock) {
        return new LaunchShape(blocks, 1, 1, threadsPerBlock, 1, 1);
    }

    /** Threads of one block. */
    public int threadsPerBlock() {
        return Math.toIntExact((long) blockX * blockY * blockZ);
    }

    private static void requireWithin(String name, int value, int limit) {
        if (value < 1 || value > limit) {
            throw new IllegalArgumentException(
                    "launch shape refused: %s=%d is not in 1..%d".formatted(name, value, limit));
        }
    }
}
