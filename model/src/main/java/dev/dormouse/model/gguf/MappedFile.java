package dev.dormouse.model.gguf;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * A file of tensors, mapped read-only.
 *
 * <p>This object owns the mapping: all slices die with {@link #close()}. The file must not be
 * shortened while it is open; replace it by renaming instead.
 */
public final class MappedFile implements AutoCloseable {
    private final Path path;
    private final Arena arena;
    private final MemorySegment bytes;

    private MappedFile(Path path, Arena arena, MemorySegment bytes) {
        this.path = path;
        this.arena = arena;
        this.bytes = bytes;
    }

    /**
     * Maps all of the file.
     *
     * @throws IOException when it cannot be read
     */
    @SuppressWarnings("MustBeClosedChecker") // the returned object owns the arena
    public static MappedFile open(Path path) throws IOException {
        Arena arena = Arena.ofShared();
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            MemorySegment bytes =
                    channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena)
                            .asReadOnly();
            return new MappedFile(path, arena, bytes);
        } catch (IOException | RuntimeException | Error e) {
            arena.close();
            throw e;
        }
    }

    /** The whole file. */
    public MemorySegment bytes() {
        return bytes;
    }

    /**
     * The bytes of a tensor whose place in this file was checked.
     *
     * @throws IllegalStateException after {@link #close()}
     */
    public MemorySegment data(TensorInfo tensor) {
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
}
