/** The model: GGUF files, tokenizer, and the Llama forward pass over a paged KV cache. */
@NullMarked
package dev.dormouse.model;

import org.jspecify.annotations.NullMarked;
