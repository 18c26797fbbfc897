/** The dormouse command. */
@NullMarked
package dev.dormouse.cli;

import org.jspecify.annotations.NullMarked;
