package dev.dormouse.transport.local;

/**
 * The file in memory that holds a range of host memory now.
 *
 * @param descriptor open for reading and writing; the receiver closes it
 * @param offsetBytes where the range starts in the file
 * @param lengthBytes how much of the file from there on holds the range
 */
public record BackingFile(int descriptor, long offsetBytes, long lengthBytes) implements Backing {}
