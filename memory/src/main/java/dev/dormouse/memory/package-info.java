/**
 * Sleepable memory: addresses reserved once, pages that go back to the machine and return by tag.
 *
 * <p>Start with {@link dev.dormouse.memory.SleepableMemory}. {@link
 * dev.dormouse.memory.MemoryUsage} and {@link dev.dormouse.memory.SystemMemory} tell what a process
 * holds and what the machine has left, as the kernel counts it.
 */
@NullMarked
package dev.dormouse.memory;

import org.jspecify.annotations.NullMarked;
