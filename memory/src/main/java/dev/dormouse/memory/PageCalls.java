package dev.dormouse.memory;

import java.lang.foreign.MemorySegment;

/**
 * The few things that memory asks of the system, so that a test can let each of them fail.
 *
 * <p>Each throws {@link dev.dormouse.foreign.LibcException}.
 */
interface PageCalls {
    /** What a mapping starts at and is rounded up to. */
    long pageSizeBytes();

    /** What the process could still get; see {@link SystemMemory#allocatableBytes()}. */
    long allocatableBytes();

    /** Takes addresses of the kernel's choice, mapped as by {@link #mapSleeping}. */
    MemorySegment reserve(long lengthBytes);

    /** Replaces the mapping of {@code range} by one that has no pages and bears any access. */
    void mapSleeping(MemorySegment range);

    /** Makes an empty file in memory. */
    int createFile(String name);

    /** Gives pages to a part of the file. */
    void allocate(int file, long offsetBytes, long lengthBytes);

    /** Fixes the file's length for good. */
    void seal(int file);

    /** Another descriptor of the file. */
    int duplicate(int file);

    /** Replaces the mapping of {@code range} by the file's pages. */
    void mapFile(MemorySegment range, int file);

    /** Enters the range's pages into the page table, so that first touches are cheap. */
    void populate(MemorySegment range);

    /** Gives the addresses back. */
    void unmap(MemorySegment range);

    /** Closes the file; it is gone even when the call fails. */
    void closeFile(int file);
}
