/**
 * What a sequence's tokens become for its client: text, stop conditions, events. Used by the
 * engine's thread alone.
 */
@NullMarked
package dev.dormouse.engine.output;

import org.jspecify.annotations.NullMarked;
