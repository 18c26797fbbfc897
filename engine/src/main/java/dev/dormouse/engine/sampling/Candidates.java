package dev.dormouse.engine.sampling;

import java.util.Arrays;

/**
 * The tokens that may still be drawn, with their weights. Working space that one thread reuses for
 * all its sequences.
 *
 * <p>Filters that need an order sort only once, and only what earlier filters left.
 */
public final class Candidates {
    private int[] tokens = new int[0];
    private float[] weights = new float[0];
    private long[] keys = new long[0];
    private int size;
    private boolean sorted;

    /** An empty space; it grows to the vocabulary's size at first use. */
    public Candidates() {}

    /**
     * Takes a whole row: each token's weight is its probability, up to a common factor that makes
     * the likeliest 1.
     */
    void fill(float[] values, int from, int to, float temperature) {
        if (tokens.length < to - from) {
            tokens = new int[to - from];
            weights = new float[to - from];
            keys = new long[to - from];
        }
        float max = values[from + Sampler.argmax(values, from, to)];
        size = 0;
        sorted = false;
        for (int i = from; i < to; i++) {
            float weight = (float) Math.exp(((double) values[i] - max) / temperature);
            if (weight > 0) {
                tokens[size] = i - from;
                weights[size++] = weight;
            }
        }
    }

    /** Drops tokens whose probability is below {@code minP} of the likeliest token's. */
    void keepAbove(double minP) {
        if (minP > 0) {
            int kept = 0;
            for (int i = 0; i < size; i++) {
                if (weights[i] >= minP) {
                    move(i, kept++);
                }
            }
            size = kept;
        }
    }

    /** Keeps the {@code topK} likeliest tokens; 0 or less keeps all. */
    void keepLikeliest(int topK) {
        if (topK > 0 && topK < size) {
            sort();
            size = topK;
        }
    }

    /** Keeps the smallest set of likeliest tokens whose probability reaches {@code topP}. */
    void keepProbability(double topP) {
        if (topP >= 1 || size < 2) {
            return;
        }
        double total = total();
        // A token below this share cannot be needed: all such tokens together weigh less than what
        // may be left out.
        double negligible = (1 - topP) * total / size;
        if (!sorted) {
            int kept = 0;
            for (int i = 0; i < size; i++) {
                if (weights[i] >= negligible) {
                    move(i, kept++);
                }
            }
            size = kept;
        }
        sort();
        double sum = 0;
        for (int i = 0; i < size; i++) {
            sum += weights[i];
            if (sum >= topP * total) {
                size = i + 1;
            }
        }
    }

    /** The token at {@code point} of the cumulated weights. */
    int draw(double point) {
        double left = point * total();
        for (int i = 0; i < size - 1; i++) {
            left -= weights[i];
            if (left < 0) {
                return tokens[i];
            }
        }
        return tokens[size - 1];
    }

    private double total() {
        double total = 0;
        for (int i = 0; i < size; i++) {
            total += weights[i];
        }
        return total;
    }

    private void move(int from, int to) {
        tokens[to] = tokens[from];
        weights[to] = weights[from];
    }

    /** Likeliest first; of equals, the smaller token first. */
    private void sort() {
        if (sorted) {
            return;
        }
        sorted = true;
        for (int i = 0; i < size; i++) {
            // Positive floats order as their bits do; their complement sorts the likeliest first.
            keys[i] = ((long) ~Float.floatToRawIntBits(weights[i]) << 32) | tokens[i];
        }
        Arrays.sort(keys, 0, size);
        for (int i = 0; i < size; i++) {
            tokens[i] = (int) keys[i];
            weights[i] = Float.intBitsToFloat(~(int) (keys[i] >> 32));
        }
    }
}
