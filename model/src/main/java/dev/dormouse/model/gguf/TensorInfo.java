package dev.dormouse.model.gguf;

import java.util.List;

/**
 * Where a tensor lies in a file and how it is laid out.
 *
 * @param name unique in the file, such as {@code blk.0.attn_q.weight}
 * @param type format of the elements
 * @param shape 1 to 4 positive extents, the contiguous one first: a matrix of {@code rows} rows of
 *     {@code rowLength} elements is {@code [rowLength, rows]}
 * @param fileOffset of the first byte, from the start of the file, in bytes
 * @param lengthBytes size of the data in bytes
 */
public record TensorInfo(
        String name, TensorType type, List<Long> shape, long fileOffset, long lengthBytes) {
    /** Copies the shape. */
    public TensorInfo {
        shape = List.copyOf(shape);
    }

    /** Elements in one contiguous row. */
    public long rowLength() {
        return shape.getFirst();
    }

    /** Rows: the product of all extents but the first. */
    public long rows() {
        return shape.stream().skip(1).reduce(1L, (a, b) -> a * b);
    }

    /** Elements in all. */
    public long elements() {
        return rowLength() * rows();
    }

    /** Bytes of one contiguous row. */
    public long rowBytes() {
        return type.bytesFor(rowLength());
    }
}
