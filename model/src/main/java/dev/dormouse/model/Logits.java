package dev.dormouse.model;

/**
 * Logit rows of one step, row-major.
 *
 * @param values {@code rows * vocabularySize} floats at least; reused by the next step
 * @param rows how many rows are valid
 * @param vocabularySize the length of a row
 */
@SuppressWarnings(
        "ArrayRecordComponent") // a view of the model's own buffer, valid until the next step
public record Logits(float[] values, int rows, int vocabularySize) {
    /** The index in {@link #values} of the first logit of {@code row}. */
    public int offset(int row) {
        if (row < 0 || row >= rows) {
            throw new IndexOutOfBoundsException("logit row " + row + " of " + rows);
        }
        return row * vocabularySize;
    }
}
