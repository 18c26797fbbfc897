package dev.dormouse.transport.local;

/** What backs a range of memory, as a {@link SegmentSource} knows it. */
public sealed interface Backing permits BackingFile, BackingPieces {}
