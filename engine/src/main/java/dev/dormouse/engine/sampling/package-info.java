/** How the next token is chosen from a row of logits. Used by the engine's thread alone. */
@NullMarked
package dev.dormouse.engine.sampling;

import org.jspecify.annotations.NullMarked;
