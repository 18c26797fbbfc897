/** Tests of the tokenizer against llama.cpp's ids and against its own laws. */
@NullMarked
package dev.dormouse.model.tokenizer;

import org.jspecify.annotations.NullMarked;
