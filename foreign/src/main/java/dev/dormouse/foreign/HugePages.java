package dev.dormouse.foreign;

import java.lang.foreign.MemorySegment;

/**
 * Anonymous memory that begins with a huge page, and is of those where Linux has them. Who touches
 * it after its end kills the JVM.
 */
public final class HugePages implements AutoCloseable {
    /** Of a huge page, on x86-64. */
    public static final long PAGE_BYTES = 2L << 20;

    private static final int NO_FILE = -1;

    private final MemorySegment mapping;
    private final MemorySegment segment;
    private boolean open = true;

    private HugePages(MemorySegment mapping, MemorySegment segment) {
        this.mapping = mapping;
        this.segment = segment;
    }

    /**
     * Maps memory, of which no page is there before it is touched.
     *
     * @throws LibcException if there is no room for it; nothing is mapped then
     */
    public static HugePages map(long lengthBytes) {
        MemorySegment mapping =
                Libc.map(
                        lengthBytes + PAGE_BYTES,
                        Libc.PROT_READ | Libc.PROT_WRITE,
                        Libc.MAP_PRIVATE | Libc.MAP_ANONYMOUS,
                        NO_FILE,
                        0);
        long unaligned = Math.floorMod(mapping.address(), PAGE_BYTES);
        HugePages pages =
                new HugePages(mapping, mapping.asSlice(PAGE_BYTES - unaligned, lengthBytes));
        try {
            boolean _ = Libc.adviseIfKnown(pages.segment, Libc.MADV_HUGEPAGE);
            return pages;
        } catch (LibcException e) {
            pages.close();
            throw e;
        }
    }

    /** All of it. */
    public MemorySegment segment() {
        return segment;
    }

    /**
     * Gives it back. Idempotent.
     *
     * @throws LibcException if it stays
     */
    @Override
    public void close() {
        if (open) {
            open = false;
            Libc.unmap(mapping);
        }
    }
}
