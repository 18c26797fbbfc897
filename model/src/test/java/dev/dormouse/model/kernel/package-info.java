/** Tests of the kernels: every implementation against the definition, bit for bit. */
@NullMarked
package dev.dormouse.model.kernel;

import org.jspecify.annotations.NullMarked;
