/**
 * {@code dormouse bench costs}: what it costs that prefill and decode are apart, and that engines
 * sleep, start and wait.
 */
@NullMarked
package dev.dormouse.cli.bench.costs;

import org.jspecify.annotations.NullMarked;
