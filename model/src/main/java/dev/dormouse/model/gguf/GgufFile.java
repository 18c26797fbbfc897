package dev.dormouse.model.gguf;

import dev.dormouse.model.TensorSource;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * An open GGUF file, versions 2 and 3, mapped into memory.
 *
 * <p>This object owns the mapping: all slices that it hands out die with {@link #close()}, after
 * which they throw {@link IllegalStateException}. Pages are read from disk on first touch. The file
 * must not be shortened while it is open; replace it by renaming instead. Safe from any thread.
 */
public final class GgufFile implements TensorSource, AutoCloseable {
    private final Path path;
    private final MappedFile file;
    private final GgufMetadata metadata;
    private final Map<String, TensorInfo> tensors;

    private GgufFile(Path path, MappedFile file, GgufParser.Header header) {
        this.path = path;
        this.file = file;
        this.metadata = header.metadata();
        this.tensors = Collections.unmodifiableMap(header.tensors());
    }

    /**
     * Maps the file and checks its whole header: each length, count, offset and type.
     *
     * @throws GgufException when the file cannot be read, is malformed, or has a tensor of an
     *     unsupported type
     */
    public static GgufFile open(Path path) {
        MappedFile file = map(path);
        try {
            return new GgufFile(path, file, new GgufParser(file.bytes(), path.toString()).parse());
        } catch (RuntimeException | Error e) {
            file.close();
            throw e;
        }
    }

    private static MappedFile map(Path path) {
        try {
            return MappedFile.open(path);
        } catch (IOException e) {
            throw new GgufException("open " + path + ": " + e, e);
        }
    }

    @Override
    public Path path() {
        return path;
    }

    /** Size of the file in bytes. */
    public long lengthBytes() {
        return file.bytes().byteSize();
    }

    /** The key-value part. */
    public GgufMetadata metadata() {
        return metadata;
    }

    /** All tensors in the order of the file. */
    @Override
    public Collection<TensorInfo> tensors() {
        return tensors.values();
    }

    @Override
    public Optional<TensorInfo> findTensor(String name) {
        return Optional.ofNullable(tensors.get(name));
    }

    @Override
    public TensorInfo tensor(String name) {
        @Nullable TensorInfo tensor = tensors.get(name);
        if (tensor == null) {
            throw new GgufException(
                    "read %s: it has no tensor '%s' among its %d"
                            .formatted(path, name, tensors.size()));
        }
        return tensor;
    }

    /**
     * The tensor's bytes: read-only, exactly {@link TensorInfo#lengthBytes()} long, valid until
     * {@link #close()}. Its address has the file's alignment, 32 bytes unless the file says less.
     *
     * @throws GgufException when the tensor is not this file's
     * @throws IllegalStateException after {@link #close()}
     */
    @Override
    public MemorySegment data(TensorInfo tensor) {
        if (!tensor.equals(tensors.get(tensor.name()))) {
            throw new GgufException(
                    "read %s: tensor '%s' is not of this file".formatted(path, tensor.name()));
        }
        return file.data(tensor);
    }

    /** Unmaps the file. Slices handed out before are unusable from then on. Idempotent. */
    @Override
    public void close() {
        file.close();
    }

    @Override
    public String toString() {
        return "GgufFile[" + path + ", " + tensors.size() + " tensors]";
    }
}
