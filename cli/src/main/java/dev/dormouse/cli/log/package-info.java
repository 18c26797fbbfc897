/** What the log looks like. */
@NullMarked
package dev.dormouse.cli.log;

import org.jspecify.annotations.NullMarked;
