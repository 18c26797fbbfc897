/** The prefill/decode router. */
@NullMarked
package dev.dormouse.router;

import org.jspecify.annotations.NullMarked;
