/** {@code dormouse route}. */
@NullMarked
package dev.dormouse.cli.route;

import org.jspecify.annotations.NullMarked;
