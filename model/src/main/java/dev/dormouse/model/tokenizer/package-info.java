/**
 * Turns text into token ids and back, as a GGUF file's metadata or {@code tokenizer.json} says:
 * BPE, mostly of bytes.
 *
 * <p>It knows nothing of chat or of model weights. A {@link dev.dormouse.model.tokenizer.Tokenizer}
 * may be used from any thread; an {@link dev.dormouse.model.tokenizer.IncrementalDecoder} belongs
 * to one.
 */
@NullMarked
package dev.dormouse.model.tokenizer;

import org.jspecify.annotations.NullMarked;
