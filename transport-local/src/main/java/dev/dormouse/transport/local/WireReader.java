package dev.dormouse.transport.local;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.dormouse.transport.TransportException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads what a peer wrote, which may be anything. Each method throws {@link TransportException}.
 */
final class WireReader {
    private final String what;
    private final ByteBuffer bytes;

    /**
     * Reads from the start.
     *
     * @param what for messages
     */
    WireReader(String what, byte[] bytes) {
        this.what = what;
        this.bytes = ByteBuffer.wrap(bytes);
    }

    byte one() {
        try {
            return bytes.get();
        } catch (BufferUnderflowException e) {
            throw cut(e);
        }
    }

    int count(int limit) {
        try {
            int count = Short.toUnsignedInt(bytes.getShort());
            if (count > limit) {
                throw malformed("a count is " + count + ", at most " + limit + " are possible");
            }
            return count;
        } catch (BufferUnderflowException e) {
            throw cut(e);
        }
    }

    long number() {
        try {
            return bytes.getLong();
        } catch (BufferUnderflowException e) {
            throw cut(e);
        }
    }

    Token token() {
        return new Token(number(), number());
    }

    List<Token> tokens(int limit) {
        List<Token> tokens = new ArrayList<>();
        for (int left = count(limit); left > 0; left--) {
            tokens.add(token());
        }
        return tokens;
    }

    /** A text that can stand in a line of a log. */
    String text(int limitBytes) {
        byte[] text = new byte[count(limitBytes)];
        try {
            bytes.get(text);
            String decoded = UTF_8.newDecoder().decode(ByteBuffer.wrap(text)).toString();
            if (decoded.isEmpty() || decoded.chars().anyMatch(Character::isISOControl)) {
                throw malformed("a name is empty or has control characters");
            }
            return decoded;
        } catch (BufferUnderflowException e) {
            throw cut(e);
        } catch (CharacterCodingException e) {
            throw malformed("a name is not UTF-8");
        }
    }

    byte[] rest() {
        byte[] rest = new byte[bytes.remaining()];
        bytes.get(rest);
        return rest;
    }

    void requireEnd() {
        if (bytes.hasRemaining()) {
            throw malformed(bytes.remaining() + " bytes follow its end");
        }
    }

    TransportException malformed(String why) {
        return new TransportException("read " + what + " failed: " + why);
    }

    private TransportException cut(BufferUnderflowException e) {
        TransportException failure = malformed("it ends after " + bytes.limit() + " bytes");
        failure.initCause(e);
        return failure;
    }
}
