/**
 * The arithmetic of the forward pass.
 *
 * <p>Everything is built on one product: up to six rows of 32 inputs times a tile of 32 inputs by
 * 32 outputs. Each sum adds its terms in an order that the terms' positions alone decide, so a
 * row's result does not depend on the rows beside it, on the vector width, or on the number of
 * threads: every implementation of {@link dev.dormouse.model.kernel.Kernels} gives the same bits.
 */
@NullMarked
package dev.dormouse.model.kernel;

import org.jspecify.annotations.NullMarked;
