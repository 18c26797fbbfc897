/**
 * The model: GGUF files and Hugging Face folders, tokenizer, and the forward pass of the Llama and
 * Qwen architectures over a paged KV cache.
 */
@NullMarked
package dev.dormouse.model;

import org.jspecify.annotations.NullMarked;
