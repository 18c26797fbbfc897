/**
 * Reads GGUF model files: typed metadata and tensors as read-only slices of one memory mapping.
 *
 * <p>It knows nothing of tokenizers or model architectures. Everything is immutable after opening
 * and may be used from any thread until the file is closed.
 */
@NullMarked
package dev.dormouse.model.gguf;

import org.jspecify.annotations.NullMarked;
