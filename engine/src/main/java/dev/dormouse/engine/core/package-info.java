/**
 * The engine itself: one loop that owns all state, its scheduler, its workers, and how they sleep.
 */
@NullMarked
package dev.dormouse.engine.core;

import org.jspecify.annotations.NullMarked;
