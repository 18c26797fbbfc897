/** {@code dormouse bench serve}: servers under load, as their clients see them. */
@NullMarked
package dev.dormouse.cli.bench.serve;

import org.jspecify.annotations.NullMarked;
