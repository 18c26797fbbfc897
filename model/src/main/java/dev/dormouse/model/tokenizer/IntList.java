package dev.dormouse.model.tokenizer;

import java.util.Arrays;

/** A growing row of ints. */
final class IntList {
    private int[] values = new int[16];
    private int count;

    void add(int value) {
        if (count == values.length) {
            values = Arrays.copyOf(values, count * 2);
        }
        values[count++] = value;
    }

    void addAll(int... more) {
        for (int value : more) {
            add(value);
        }
    }

    int[] toArray() {
        return Arrays.copyOf(values, count);
    }
}
