package dev.dormouse.model.kernel;

/** Which row of a tensor in a file belongs to which output of a matrix. */
@FunctionalInterface
public interface RowOrder {
    /** The order of the file. */
    RowOrder AS_STORED = output -> output;

    /** The tensor's row that holds the weights of {@code output}. */
    int row(int output);

    /** This order for outputs from {@code first} on. */
    default RowOrder from(int first) {
        return output -> row(first + output);
    }

    /**
     * Undoes what llama.cpp's converter does to the query and key rows of a Llama model: in a file,
     * elements {@code i} and {@code i + headDimension / 2} of a head, which are rotated together,
     * lie side by side. Outputs are in the order of the model's authors, which other engines cache.
     */
    static RowOrder splitHalves(int headDimension) {
        int half = headDimension / 2;
        return output -> {
            int element = output % headDimension;
            return output - element + element % half * 2 + element / half;
        };
    }
}
