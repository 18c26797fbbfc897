package dev.dormouse.model;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * What some models do to queries, keys and values before the rotation: Qwen 2 adds biases, Qwen 3
 * normalises each head of the queries and the keys by its root mean square.
 */
final class HeadAdjustment {
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private final int heads;
    private final int kvHeads;
    private final int head;
    private final float epsilon;

    HeadAdjustment(ModelConfig config) {
        heads = config.heads();
        kvHeads = config.kvHeads();
        head = config.headDimension();
        epsilon = config.rmsEpsilon();
    }

    /** Adjusts the queries, keys and values of one row, which start at {@code start}. */
    void apply(LlamaLayout.Layer layer, MemorySegment weights, float[] projected, int start) {
        if (layer.biases().isPresent()) {
            long biases = layer.biases().get();
            for (int i = 0; i < (heads + 2 * kvHeads) * head; i++) {
                projected[start + i] += weights.get(FLOAT, biases + 4L * i);
            }
        }
        if (layer.headNorms().isPresent()) {
            LlamaLayout.HeadNorms norms = layer.headNorms().get();
            for (int h = 0; h < heads + kvHeads; h++) {
                long norm = h < heads ? norms.query() : norms.key();
                normalise(projected, start + h * head, weights, norm);
            }
        }
    }

    private void normalise(float[] values, int offset, MemorySegment weights, long norm) {
        double squares = 0;
        for (int i = offset; i < offset + head; i++) {
            squares += (double) values[i] * values[i];
        }
        float scale = (float) (1 / Math.sqrt(squares / head + epsilon));
        for (int i = 0; i < head; i++) {
            values[offset + i] = values[offset + i] * scale * weights.get(FLOAT, norm + 4L * i);
        }
    }
}
