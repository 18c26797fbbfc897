package dev.dormouse.model;

import dev.dormouse.model.gguf.TensorInfo;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Optional;

/** Where a model's tensors are. They are asked for by the names that llama.cpp gives them. */
public interface TensorSource {
    /** The file or the folder, for messages. */
    Path path();

    /** All tensors that a model has to account for, under their names in the file. */
    Collection<TensorInfo> tensors();

    /** The tensor that llama.cpp calls {@code name}, or empty. */
    Optional<TensorInfo> findTensor(String name);

    /**
     * The tensor that llama.cpp calls {@code name}.
     *
     * @throws ModelException when there is none
     */
    TensorInfo tensor(String name);

    /**
     * The bytes of one of this source's tensors: read-only, exactly {@link
     * TensorInfo#lengthBytes()} long, mapped from a file.
     *
     * @throws ModelException when the tensor is of another source
     * @throws IllegalStateException when the source is closed
     */
    MemorySegment data(TensorInfo tensor);
}
