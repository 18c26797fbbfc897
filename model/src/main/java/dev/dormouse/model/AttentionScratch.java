package dev.dormouse.model;

import static dev.dormouse.model.kernel.Kernels.TILE;

import dev.dormouse.model.kernel.BlockedRows;
import dev.dormouse.model.kernel.Exponential;
import java.util.Arrays;

/**
 * What one thread needs to attend, and the running softmax of its queries.
 *
 * <p>The state of {@code q} queries is an array part: first their weighted sums of V, {@code head
 * dimension} floats each, then a maximum and a sum of weights each.
 */
final class AttentionScratch {
    final BlockedRows queries = new BlockedRows();
    final long[] offsets = new long[TILE];
    final int[] words;
    final float[] keys;
    final float[] values;
    final float[] scores = new float[BlockedRows.GROUP * TILE];
    final float[] product = new float[BlockedRows.GROUP * TILE];
    final float[] oldWeights = new float[BlockedRows.GROUP];
    final float[] newWeights = new float[BlockedRows.GROUP];
    final float[] ownState;
    float[] state;
    int stateOffset;
    private int queryCount;
    private final int headDimension;

    AttentionScratch(int mostQueries, int headDimension) {
        this.headDimension = headDimension;
        words = new int[headDimension / 2 * TILE];
        keys = new float[headDimension * TILE];
        values = new float[headDimension * TILE];
        ownState = new float[stateLength(mostQueries, headDimension)];
        state = ownState;
    }

    static int stateLength(int queries, int headDimension) {
        return queries * (headDimension + 2);
    }

    /** Begins with nothing attended, the state being kept from {@code offset} on. */
    void start(int count, float[] state, int offset) {
        resume(count, state, offset);
        queries.reshape(count, headDimension);
        Arrays.fill(state, offset, offset + count * headDimension, 0.0f);
        for (int q = 0; q < count; q++) {
            state[maximumIndex(q)] = Float.NEGATIVE_INFINITY;
            state[maximumIndex(q) + 1] = 0.0f;
        }
    }

    /** Goes on with a state. */
    void resume(int count, float[] state, int offset) {
        this.state = state;
        stateOffset = offset;
        queryCount = count;
    }

    /** Where a query's weighted sum of 32 dimensions starts. */
    int sumIndex(int query, int block) {
        return stateOffset + query * headDimension + block * TILE;
    }

    /** Where a query's maximum is; its sum of weights follows. */
    int maximumIndex(int query) {
        return stateOffset + queryCount * headDimension + 2 * query;
    }

    /**
     * Takes the maximum and sum of a further tile into a query's state, and computes the factors of
     * the two weighted sums, one of which is 1.
     *
     * @param slot where the factors go
     */
    void weigh(int query, int slot, float maximum, float sum) {
        int at = maximumIndex(query);
        float before = state[at];
        if (maximum > before) {
            oldWeights[slot] = Exponential.exp(before - maximum);
            newWeights[slot] = 1.0f;
            state[at] = maximum;
        } else {
            oldWeights[slot] = 1.0f;
            newWeights[slot] = Exponential.exp(maximum - before);
        }
        state[at + 1] = Math.fma(state[at + 1], oldWeights[slot], sum * newWeights[slot]);
    }

    /** Leaves a query's state as it is. */
    void keep(int slot) {
        oldWeights[slot] = 1.0f;
        newWeights[slot] = 0.0f;
    }
}
