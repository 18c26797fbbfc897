/**
 * Opens model folders as Hugging Face's hub has them: {@code config.json}, safetensors files, the
 * tokenizer's files.
 *
 * <p>Everything is immutable after opening and may be used from any thread until the folder is
 * closed.
 */
@NullMarked
package dev.dormouse.model.folder;

import org.jspecify.annotations.NullMarked;
