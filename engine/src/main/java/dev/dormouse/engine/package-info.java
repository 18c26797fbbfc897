/** The serving engine: scheduler, workers, engine core and sleep. */
@NullMarked
package dev.dormouse.engine;

import org.jspecify.annotations.NullMarked;
