/** Models and helpers that the tests of several modules share. */
@NullMarked
package dev.dormouse.testkit;

import org.jspecify.annotations.NullMarked;
