/**
 * Sleepable memory: addresses reserved once, pages that go back to the machine and return by tag.
 */
@NullMarked
package dev.dormouse.memory;

import org.jspecify.annotations.NullMarked;
