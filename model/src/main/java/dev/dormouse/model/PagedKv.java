package dev.dormouse.model;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * A view of a paged KV cache for the length of one step.
 *
 * <p>The segments belong to whoever holds the memory lease; a view must not outlive the step that
 * it was made for.
 *
 * @param shape the cache's shape
 * @param blocks blocks per region
 * @param layers one segment per layer, each of {@code blocks * shape.blockBytes()} bytes
 */
public record PagedKv(KvCacheShape shape, int blocks, List<MemorySegment> layers) {
    /** Checks that the segments fit the shape. */
    public PagedKv {
        layers = List.copyOf(layers);
        if (layers.size() != shape.layers()) {
            throw new IllegalArgumentException(
                    "KV view: " + layers.size() + " regions for " + shape.layers() + " layers");
        }
        long expected = blocks * shape.blockBytes();
        for (MemorySegment layer : layers) {
            if (layer.byteSize() != expected) {
                throw new IllegalArgumentException(
                        "KV view: region of " + layer.byteSize() + " bytes, expected " + expected);
            }
        }
    }
}
