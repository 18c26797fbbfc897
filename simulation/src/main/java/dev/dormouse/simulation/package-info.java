/**
 * Whole clusters of engines under one seeded scheduler and virtual time: the production code of
 * connector and engine over page-accurate model memory, with every answer checked.
 */
@NullMarked
package dev.dormouse.simulation;

import org.jspecify.annotations.NullMarked;
