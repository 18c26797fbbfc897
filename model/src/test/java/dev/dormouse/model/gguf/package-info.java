/** Tests of the GGUF reader, and the writer that makes their files. */
@NullMarked
package dev.dormouse.model.gguf;

import org.jspecify.annotations.NullMarked;
