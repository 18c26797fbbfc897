package dev.dormouse.testkit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A process's memory as a page table: addresses stay, pages come and go.
 *
 * <p>{@link #map} puts new pages under an address, {@link #unmap} takes them away. Whoever pinned a
 * page keeps it, and sees its old bytes, after it was unmapped: that is what a memory registration
 * of a network card does, and what makes a stale one so quiet. New pages are filled with {@link
 * #POISON}.
 */
public final class ModelMemory {
    /** What a page holds before anybody wrote to it. */
    public static final byte POISON = (byte) 0xDB;

    private static final long FIRST_ADDRESS = 0x7f00_0000_0000L;

    /** One page. */
    static final class Page {
        private final byte[] bytes;
        private int pins;
        private boolean mapped = true;

        private Page(int pageBytes) {
            bytes = new byte[pageBytes];
            Arrays.fill(bytes, POISON);
        }

        byte[] bytes() {
            return bytes;
        }
    }

    private final int pageBytes;
    private final Map<Long, Page> table = new HashMap<>();
    private final Set<Page> orphans = Collections.newSetFromMap(new IdentityHashMap<>());
    private long nextAddress;

    /** An empty address space with pages of {@code pageBytes}. */
    public ModelMemory(int pageBytes) {
        if (pageBytes < 1) {
            throw new IllegalArgumentException("model memory: pageBytes=" + pageBytes);
        }
        this.pageBytes = pageBytes;
        this.nextAddress = FIRST_ADDRESS - FIRST_ADDRESS % pageBytes;
    }

    /** The size of a page. */
    public int pageBytes() {
        return pageBytes;
    }

    /**
     * Reserves addresses for at least {@code lengthBytes}, page aligned, without pages and with a
     * hole behind them.
     */
    public synchronized long reserve(long lengthBytes) {
        long address = nextAddress;
        nextAddress += (pagesFor(lengthBytes) + 1) * pageBytes;
        return address;
    }

    /** Reserves and maps. */
    public synchronized long allocate(long lengthBytes) {
        long address = reserve(lengthBytes);
        map(address, lengthBytes);
        return address;
    }

    /** Puts new, poisoned pages under a page-aligned range that has none. */
    public synchronized void map(long address, long lengthBytes) {
        requireAligned(address);
        for (long page = 0; page < pagesFor(lengthBytes); page++) {
            long number = address / pageBytes + page;
            if (table.containsKey(number)) {
                throw new IllegalStateException(
                        "map: 0x" + Long.toHexString(number * pageBytes) + " is mapped already");
            }
            table.put(number, new Page(pageBytes));
        }
    }

    /** Takes the pages of a page-aligned range away; pinned ones live on, unreachable from here. */
    public synchronized void unmap(long address, long lengthBytes) {
        requireAligned(address);
        for (long page = 0; page < pagesFor(lengthBytes); page++) {
            Page gone = page(address + page * pageBytes);
            table.remove(address / pageBytes + page);
            gone.mapped = false;
            if (gone.pins > 0) {
                orphans.add(gone);
            }
        }
    }

    /** Writes as the owner does: to the pages that are mapped now. */
    public synchronized void write(long address, byte[] bytes) {
        for (int done = 0; done < bytes.length; ) {
            int offset = (int) ((address + done) % pageBytes);
            int length = Math.min(pageBytes - offset, bytes.length - done);
            System.arraycopy(bytes, done, page(address + done).bytes, offset, length);
            done += length;
        }
    }

    /** Reads as the owner does: from the pages that are mapped now. */
    public synchronized byte[] read(long address, int lengthBytes) {
        byte[] bytes = new byte[lengthBytes];
        for (int done = 0; done < lengthBytes; ) {
            int offset = (int) ((address + done) % pageBytes);
            int length = Math.min(pageBytes - offset, lengthBytes - done);
            System.arraycopy(page(address + done).bytes, offset, bytes, done, length);
            done += length;
        }
        return bytes;
    }

    /** Reads as another process does that names addresses: a missing page is all zeros. */
    synchronized byte[] readFromOutside(long address, int lengthBytes) {
        byte[] bytes = new byte[lengthBytes];
        for (int i = 0; i < lengthBytes; i++) {
            Page page = table.get((address + i) / pageBytes);
            bytes[i] = page == null ? 0 : page.bytes[(int) ((address + i) % pageBytes)];
        }
        return bytes;
    }

    /** Writes as the kernel does for another process's data: what has no page is lost. */
    synchronized void writeFromOutside(long address, byte[] bytes) {
        for (int i = 0; i < bytes.length; i++) {
            Page page = table.get((address + i) / pageBytes);
            if (page != null) {
                page.bytes[(int) ((address + i) % pageBytes)] = bytes[i];
            }
        }
    }

    /** Bytes of all pages that exist: the mapped ones, and unmapped ones that are still pinned. */
    public synchronized long residentBytes() {
        return (long) (table.size() + orphans.size()) * pageBytes;
    }

    /** The pages under a range, pinned. */
    synchronized List<Page> pin(long address, long lengthBytes) {
        List<Page> pages = new ArrayList<>();
        long last = (address + lengthBytes - 1) / pageBytes;
        for (long number = address / pageBytes; number <= last; number++) {
            pages.add(page(number * pageBytes));
        }
        pages.forEach(page -> page.pins++);
        return pages;
    }

    /** Pins pages that are pinned already, mapped or not. */
    synchronized void pinAgain(List<Page> pages) {
        pages.forEach(page -> page.pins++);
    }

    synchronized void unpin(List<Page> pages) {
        for (Page page : pages) {
            page.pins--;
            if (page.pins == 0 && !page.mapped) {
                orphans.remove(page);
            }
        }
    }

    private Page page(long address) {
        Page page = table.get(address / pageBytes);
        if (page == null) {
            throw new IllegalStateException(
                    "access: 0x" + Long.toHexString(address) + " has no page");
        }
        return page;
    }

    private long pagesFor(long lengthBytes) {
        return (lengthBytes + pageBytes - 1) / pageBytes;
    }

    private void requireAligned(long address) {
        if (address % pageBytes != 0) {
            throw new IllegalArgumentException(
                    "0x" + Long.toHexString(address) + " is not at the start of a page");
        }
    }
}
