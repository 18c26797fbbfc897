/** Tests of the model, and the reference data that they share. */
@NullMarked
package dev.dormouse.model;

import org.jspecify.annotations.NullMarked;
