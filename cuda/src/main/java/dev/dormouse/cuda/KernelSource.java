package dev.dormouse.cuda;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/**
 * CUDA C++ to compile, in one piece: it may include nothing.
 *
 * @param name as {@code gather.cu}, for messages
 * @param text the source
 */
public record KernelSource(String name, String text) {
    /** Reads a resource that stands beside a class. */
    public static KernelSource resource(Class<?> neighbour, String name) {
        try (InputStream in = neighbour.getResourceAsStream(name)) {
            if (in == null) {
                throw new IllegalArgumentException("no resource " + name + " beside " + neighbour);
            }
            return new KernelSource(name, new String(in.readAllBytes(), StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
