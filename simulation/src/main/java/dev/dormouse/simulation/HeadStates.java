package dev.dormouse.simulation;

import dev.dormouse.model.Logits;

/** What an engine's ranks add up in a step: the state of every head, from which the logits come. */
final class HeadStates {
    private static final int MAX_ROWS = 64;

    private final int heads;
    private final int ranks;
    private final long[][] states;
    private final float[] logits = new float[MAX_ROWS * ChainModel.VOCABULARY];

    HeadStates(int heads, int ranks) {
        this.heads = heads;
        this.ranks = ranks;
        this.states = new long[MAX_ROWS][heads];
    }

    /**
     * A rank's state of a head. Where ranks have the same head, a difference shows in the token.
     */
    void put(int rank, int row, int head, long state) {
        boolean repeated = rank > 0 && rank * heads / ranks == (rank - 1) * heads / ranks;
        if (!repeated) {
            states[row][head] = state;
        } else if (states[row][head] != state) {
            states[row][head] ^= ChainModel.mix(rank);
        }
    }

    /** The logits, once every rank has computed. */
    Logits logits(int rows) {
        for (int row = 0; row < rows; row++) {
            ChainModel.fillRow(logits, row * ChainModel.VOCABULARY, combine(states[row]));
        }
        return new Logits(logits, rows, ChainModel.VOCABULARY);
    }

    static long combine(long[] states) {
        long combined = 0;
        for (long state : states) {
            combined = ChainModel.mix(combined ^ state);
        }
        return combined;
    }
}
