package dev.dormouse.model.gguf;

import dev.dormouse.model.TensorSource;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
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
    private final Arena arena;
    private final MemorySegment bytes;
    private final GgufMetadata metadata;
    private final Map<String, TensorInfo> tensors;

    private GgufFile(Path path, Arena arena, MemorySegment bytes, GgufParser.Header header) {
        this.path = path;
        this.arena = arena;
        this.bytes = bytes;
        this.metadata = header.metadata();
        this.tensors = Collections.unmodifiableMap(header.tensors());
    }

    /**
     * Maps the file and checks its whole header: each length, count, offset and type.
     *
     * @throws GgufException when the file cannot be read, is malformed, or has a tensor of an
     *     unsupported type
     */
    @SuppressWarnings("MustBeClosedChecker") // the returned object owns the arena
    public static GgufFile open(Path path) {
        Arena arena = Arena.ofShared();
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            MemorySegment bytes =
                    channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena)
                            .asReadOnly();
            GgufParser.Header header = new GgufParser(bytes, path.toString()).parse();
            return new GgufFile(path, arena, bytes, header);
        } catch (IOException e) {
            arena.close();
            throw new GgufException("open " + path + ": " + e, e);
        } catch (RuntimeException | Error e) {
            arena.close();
            throw e;
        }
    }

    @Override
    public Path path() {
        return path;
    }

    /** Size of the file in bytes. */
    public long lengthBytes() {
        return bytes.byteSize();
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
        if (!arena.scope().isAlive()) {
            throw new IllegalStateException(
                    "read " + path + ": tensor '" + tensor.name() + "' was asked after close");
        }
        return bytes.asSlice(tensor.fileOffset(), tensor.lengthBytes());
    }

    /** Unmaps the file. Slices handed out before are unusable from then on. Idempotent. */
    @Override
    public synchronized void close() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }

    @Override
    public String toString() {
        return "GgufFile[" + path + ", " + tensors.size() + " tensors]";
    }
}
