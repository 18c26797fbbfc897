package dev.dormouse.model.folder;

import dev.dormouse.model.ModelException;
import dev.dormouse.model.gguf.MappedFile;
import dev.dormouse.model.gguf.TensorInfo;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Map;

/** An open safetensors file, mapped into memory. */
final class SafetensorsFile implements AutoCloseable {
    private final MappedFile file;
    private final Map<String, TensorInfo> tensors;

    private SafetensorsFile(MappedFile file, Map<String, TensorInfo> tensors) {
        this.file = file;
        this.tensors = tensors;
    }

    /**
     * Maps the file and checks its whole header.
     *
     * @throws ModelException when the file cannot be read, is malformed, or has a tensor of an
     *     unsupported type
     */
    static SafetensorsFile open(Path path) {
        MappedFile file = map(path);
        try {
            return new SafetensorsFile(file, SafetensorsHeader.read(file.bytes(), path.toString()));
        } catch (RuntimeException | Error e) {
            file.close();
            throw e;
        }
    }

    private static MappedFile map(Path path) {
        try {
            return MappedFile.open(path);
        } catch (IOException e) {
            throw new ModelException("open " + path + ": " + e, e);
        }
    }

    /** By name, in the order of the data; the first extent is the contiguous one. */
    Map<String, TensorInfo> tensors() {
        return tensors;
    }

    /** The bytes of one of this file's tensors. */
    MemorySegment data(TensorInfo tensor) {
        return file.data(tensor);
    }

    @Override
    public void close() {
        file.close();
    }
}
