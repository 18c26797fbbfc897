package dev.dormouse.model;

import java.util.BitSet;
import java.util.List;

/**
 * The checked chunks of one step, with their tokens numbered through as rows.
 *
 * @param chunks in the caller's order
 * @param firstRows the row of each chunk's first token; one more entry, the number of rows
 * @param chunkOfRow the chunk that each row belongs to
 * @param logitRows the rows whose logits were asked for, ascending
 */
@SuppressWarnings("ArrayRecordComponent") // private to one step of the forward pass
record StepBatch(List<SequenceChunk> chunks, int[] firstRows, int[] chunkOfRow, int[] logitRows) {

    /**
     * Checks everything that the forward pass relies on.
     *
     * @throws IllegalArgumentException naming the chunk and the limit
     */
    static StepBatch of(List<SequenceChunk> chunks, ModelConfig config, PagedKv kv) {
        int[] firstRows = new int[chunks.size() + 1];
        long logitRows = 0;
        for (int i = 0; i < chunks.size(); i++) {
            SequenceChunk chunk = chunks.get(i);
            checkTokens(i, chunk, config);
            checkBlocks(i, chunk, kv);
            firstRows[i + 1] = Math.addExact(firstRows[i], chunk.tokens().length);
            logitRows += chunk.logitRows();
        }
        if (chunks.isEmpty() || logitRows * config.vocabularySize() > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "forward: %d chunks with %d logit rows of %d; needs at least one chunk and at most %d logits"
                            .formatted(
                                    chunks.size(),
                                    logitRows,
                                    config.vocabularySize(),
                                    Integer.MAX_VALUE));
        }
        checkSharing(chunks, kv);
        return number(chunks, firstRows, (int) logitRows);
    }

    private static void checkTokens(int index, SequenceChunk chunk, ModelConfig config) {
        long end = (long) chunk.start() + chunk.tokens().length;
        if (end > config.contextLength()) {
            throw new IllegalArgumentException(
                    "forward: chunk %d ends at position %d, the model's context is %d"
                            .formatted(index, end, config.contextLength()));
        }
        for (int token : chunk.tokens()) {
            if (token < 0 || token >= config.vocabularySize()) {
                throw new IllegalArgumentException(
                        "forward: chunk %d has token %d, the vocabulary is %d"
                                .formatted(index, token, config.vocabularySize()));
            }
        }
    }

    private static void checkBlocks(int index, SequenceChunk chunk, PagedKv kv) {
        int needed = blocksUpTo(chunk.start() + chunk.tokens().length, kv);
        if (chunk.blocks().length < needed) {
            throw new IllegalArgumentException(
                    "forward: chunk %d has %d blocks, its positions need %d"
                            .formatted(index, chunk.blocks().length, needed));
        }
        for (int i = 0; i < needed; i++) {
            int block = chunk.blocks()[i];
            if (block < 0 || block >= kv.blocks()) {
                throw new IllegalArgumentException(
                        "forward: chunk %d has block %d, the cache has %d"
                                .formatted(index, block, kv.blocks()));
            }
        }
    }

    /** A block that one chunk writes must not be anyone else's, nor appear twice in its table. */
    private static void checkSharing(List<SequenceChunk> chunks, PagedKv kv) {
        BitSet written = new BitSet(kv.blocks());
        for (int i = 0; i < chunks.size(); i++) {
            SequenceChunk chunk = chunks.get(i);
            int end = blocksUpTo(chunk.start() + chunk.tokens().length, kv);
            for (int b = chunk.start() / kv.shape().blockTokens(); b < end; b++) {
                requireUnwritten(written, i, chunk.blocks()[b]);
                written.set(chunk.blocks()[b]);
            }
        }
        for (int i = 0; i < chunks.size(); i++) {
            SequenceChunk chunk = chunks.get(i);
            for (int b = 0; b < chunk.start() / kv.shape().blockTokens(); b++) {
                requireUnwritten(written, i, chunk.blocks()[b]);
            }
        }
    }

    private static void requireUnwritten(BitSet written, int index, int block) {
        if (written.get(block)) {
            throw new IllegalArgumentException(
                    "forward: chunk %d uses block %d, which this step also writes for another position"
                            .formatted(index, block));
        }
    }

    private static int blocksUpTo(int position, PagedKv kv) {
        int blockTokens = kv.shape().blockTokens();
        return (int) (((long) position + blockTokens - 1) / blockTokens);
    }

    private static StepBatch number(List<SequenceChunk> chunks, int[] firstRows, int logitRows) {
        int[] chunkOfRow = new int[firstRows[chunks.size()]];
        int[] logits = new int[logitRows];
        int next = 0;
        for (int i = 0; i < chunks.size(); i++) {
            int end = firstRows[i + 1];
            for (int row = firstRows[i]; row < end; row++) {
                chunkOfRow[row] = i;
            }
            for (int row = end - chunks.get(i).logitRows(); row < end; row++) {
                logits[next++] = row;
            }
        }
        return new StepBatch(chunks, firstRows, chunkOfRow, logits);
    }

    /** Rows of the step. */
    int rows() {
        return chunkOfRow.length;
    }

    /** The chunk that {@code row} belongs to. */
    SequenceChunk chunk(int row) {
        return chunks.get(chunkOfRow[row]);
    }

    /** The token of {@code row}. */
    int token(int row) {
        return chunk(row).tokens()[row - firstRows[chunkOfRow[row]]];
    }

    /** The position of {@code row} in its sequence. */
    int position(int row) {
        return chunk(row).start() + row - firstRows[chunkOfRow[row]];
    }
}
