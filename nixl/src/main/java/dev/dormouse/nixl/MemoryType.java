package dev.dormouse.nixl;

/** Kinds of memory that NIXL knows ({@code nixl_capi_mem_type_t}). */
public enum MemoryType {
    /** Host memory; the device id is free for the user. */
    DRAM(0),
    /** GPU memory; the device id is the GPU's index. */
    VRAM(1),
    /** Block storage. */
    BLOCK(2),
    /** Object storage. */
    OBJECT(3),
    /** Files; the device id is a file descriptor. */
    FILE(4);

    private final int code;

    MemoryType(int code) {
        this.code = code;
    }

    private static final MemoryType[] BY_CODE = values();

    int code() {
        return code;
    }

    static boolean isCode(long code) {
        return code >= 0 && code < BY_CODE.length;
    }

    static MemoryType ofCode(int code) {
        return BY_CODE[code];
    }

    /** Whether an address and a length of this kind denote bytes in an address space. */
    boolean isAddressable() {
        return this == DRAM || this == VRAM;
    }
}
