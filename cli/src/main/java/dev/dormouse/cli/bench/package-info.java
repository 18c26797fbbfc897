/** {@code dormouse bench}. */
@NullMarked
package dev.dormouse.cli.bench;

import org.jspecify.annotations.NullMarked;
