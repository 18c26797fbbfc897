package dev.dormouse.model.folder;

import dev.dormouse.model.ModelException;
import dev.dormouse.model.gguf.TensorInfo;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;

/**
 * An open safetensors file, mapped into memory.
 *
 * <p>This object owns the mapping: all slices die with {@link #close()}. The file must not be
 * shortened while it is open; replace it by renaming instead.
 */
final class SafetensorsFile implements AutoCloseable {
    private final Path path;
    private final Arena arena;
    private final MemorySegment bytes;
    private final Map<String, TensorInfo> tensors;

    private SafetensorsFile(
            Path path, Arena arena, MemorySegment bytes, Map<String, TensorInfo> tensors) {
        this.path = path;
        this.arena = arena;
        this.bytes = bytes;
        this.tensors = tensors;
    }

    /**
     * Maps the file and checks its whole header.
     *
     * @throws ModelException when the file cannot be read, is malformed, or has a tensor of an
     *     unsupported type
     */
    @SuppressWarnings("MustBeClosedChecker") // the returned object owns the arena
    static SafetensorsFile open(Path path) {
        Arena arena = Arena.ofShared();
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            MemorySegment bytes =
                    channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena)
                            .asReadOnly();
            return new SafetensorsFile(
                    path, arena, bytes, SafetensorsHeader.read(bytes, path.toString()));
        } catch (IOException e) {
            arena.close();
            throw new ModelException("open " + path + ": " + e, e);
        } catch (RuntimeException | Error e) {
            arena.close();
            throw e;
        }
    }

    /** By name, in the order of the data; the first extent is the contiguous one. */
    Map<String, TensorInfo> tensors() {
        return tensors;
    }

    /** The bytes of one of this file's tensors. */
    MemorySegment data(TensorInfo tensor) {
        if (!arena.scope().isAlive()) {
            throw new IllegalStateException(
                    "read " + path + ": tensor '" + tensor.name() + "' was asked after close");
        }
        return bytes.asSlice(tensor.fileOffset(), tensor.lengthBytes());
    }

    @Override
    public synchronized void close() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }
}
