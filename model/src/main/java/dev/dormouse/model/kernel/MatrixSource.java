package dev.dormouse.model.kernel;

/**
 * Which part of a tensor in a file a {@link PackedMatrix} is made of.
 *
 * @param rows which row of the tensor is which output
 * @param firstBlock where the inputs start in each row, in blocks
 * @param rowBlocks blocks of each row of the tensor
 */
public record MatrixSource(RowOrder rows, int firstBlock, int rowBlocks) {
    /** All columns. */
    public static MatrixSource ofRows(RowOrder rows, PackedMatrix matrix) {
        return new MatrixSource(rows, 0, matrix.blocks());
    }
}
