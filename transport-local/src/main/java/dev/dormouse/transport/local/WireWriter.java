package dev.dormouse.transport.local;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.List;

/** Writes what a {@link WireReader} reads; numbers have their high byte first. */
final class WireWriter {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

    WireWriter one(int value) {
        bytes.write(value);
        return this;
    }

    WireWriter count(int value) {
        bytes.write(value >>> 8);
        bytes.write(value);
        return this;
    }

    WireWriter number(long value) {
        bytes.writeBytes(ByteBuffer.allocate(Long.BYTES).putLong(value).array());
        return this;
    }

    WireWriter token(Token token) {
        return number(token.high()).number(token.low());
    }

    WireWriter tokens(List<Token> tokens) {
        count(tokens.size());
        tokens.forEach(this::token);
        return this;
    }

    WireWriter text(String text) {
        byte[] encoded = text.getBytes(UTF_8);
        count(encoded.length);
        bytes.writeBytes(encoded);
        return this;
    }

    WireWriter raw(byte[] from, int offset, int length) {
        bytes.write(from, offset, length);
        return this;
    }

    byte[] toBytes() {
        return bytes.toByteArray();
    }
}
