/** That what is measured can be measured. */
@NullMarked
package dev.dormouse.benchmarks;

import org.jspecify.annotations.NullMarked;
