package dev.dormouse.transport;

/** Where memory lies. */
public enum MemoryKind {
    /** Host memory. */
    DRAM,
    /** Device memory. */
    VRAM
}
