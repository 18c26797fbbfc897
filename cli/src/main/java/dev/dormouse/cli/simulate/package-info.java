/** {@code dormouse simulate}. */
@NullMarked
package dev.dormouse.cli.simulate;

import org.jspecify.annotations.NullMarked;
