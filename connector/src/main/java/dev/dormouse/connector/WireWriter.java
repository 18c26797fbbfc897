package dev.dormouse.connector;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;

/** Writer of msgpack bytes in their shortest form, on heap arrays. */
final class WireWriter {
    private interface Step {
        void run() throws IOException;
    }

    private final MessageBufferPacker packer = MessagePack.newDefaultBufferPacker();

    WireWriter map(int entries) {
        return write(() -> packer.packMapHeader(entries));
    }

    WireWriter array(int elements) {
        return write(() -> packer.packArrayHeader(elements));
    }

    WireWriter string(String value) {
        return write(() -> packer.packString(value));
    }

    WireWriter binary(byte[] value) {
        return write(() -> packer.packBinaryHeader(value.length).writePayload(value));
    }

    WireWriter integer(long value) {
        return write(() -> packer.packLong(value));
    }

    WireWriter float64(double value) {
        return write(() -> packer.packDouble(value));
    }

    WireWriter integers(List<Long> values) {
        return list(values, this::integer);
    }

    WireWriter strings(List<String> values) {
        return list(values, this::string);
    }

    <T> WireWriter list(List<T> values, Consumer<T> element) {
        array(values.size());
        values.forEach(element);
        return this;
    }

    /** Nil for null, otherwise what {@code writer} writes. */
    <T> WireWriter orNil(@Nullable T value, Consumer<T> writer) {
        if (value == null) {
            return write(packer::packNil);
        }
        writer.accept(value);
        return this;
    }

    byte[] bytes() {
        return packer.toByteArray();
    }

    private WireWriter write(Step step) {
        try {
            step.run();
            return this;
        } catch (IOException e) {
            throw new UncheckedIOException("msgpack to memory", e);
        }
    }
}
