package dev.dormouse.model.tokenizer;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;

/**
 * Decodes tokens one by one, for streaming.
 *
 * <p>All that {@link #push} and {@link #finish} return, joined, is what {@link Tokenizer#decode}
 * gives for the same tokens, if control tokens are skipped. Bytes that may be the start of a longer
 * UTF-8 sequence are held back. Used by one thread.
 */
public final class IncrementalDecoder {
    private final Tokenizer tokenizer;
    private final boolean skipSpecial;
    private final CharsetDecoder utf8 =
            StandardCharsets.UTF_8
                    .newDecoder()
                    .onMalformedInput(CodingErrorAction.REPLACE)
                    .onUnmappableCharacter(CodingErrorAction.REPLACE);
    private byte[] held = new byte[0];
    private boolean finished;

    IncrementalDecoder(Tokenizer tokenizer, boolean skipSpecial) {
        this.tokenizer = tokenizer;
        this.skipSpecial = skipSpecial;
    }

    /**
     * Takes the next token and returns the text that it completed, often empty.
     *
     * @throws IllegalArgumentException when the token is not in the vocabulary
     * @throws IllegalStateException after {@link #finish}
     */
    public String push(int token) {
        requireOpen();
        byte[] added = tokenizer.visibleBytes(token, skipSpecial);
        return added.length == 0 ? "" : decode(added, false);
    }

    /**
     * Ends the stream: what is still held back comes out as replacement characters.
     *
     * @throws IllegalStateException after {@link #finish}
     */
    public String finish() {
        requireOpen();
        finished = true;
        return decode(new byte[0], true);
    }

    private void requireOpen() {
        if (finished) {
            throw new IllegalStateException("decode token: the decoder was already finished");
        }
    }

    private String decode(byte[] added, boolean last) {
        ByteBuffer in = ByteBuffer.allocate(held.length + added.length).put(held).put(added).flip();
        // At most one char comes of each byte, and this decoder keeps nothing that needs a flush.
        CharBuffer out = CharBuffer.allocate(in.remaining());
        utf8.decode(in, out, last);
        held = new byte[in.remaining()];
        in.get(held);
        return out.flip().toString();
    }
}
