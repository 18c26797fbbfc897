/** What all benchmarks have in common. Each is in the package of what it measures. */
@NullMarked
package dev.dormouse.benchmarks;

import org.jspecify.annotations.NullMarked;
