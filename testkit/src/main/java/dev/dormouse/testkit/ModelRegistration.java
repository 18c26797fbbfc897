package dev.dormouse.testkit;

import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A registration: ranges, and the pages that lay under them when it was made. */
final class ModelRegistration implements Registration {
    /** One range with its own key, as peers name it. */
    record Section(long key, MemoryRange range, List<ModelMemory.Page> pages, int pageBytes) {
        boolean covers(long address, long lengthBytes) {
            return address >= range.address()
                    && lengthBytes <= range.lengthBytes()
                    && address - range.address() <= range.lengthBytes() - lengthBytes;
        }

        void read(long address, byte[] into) {
            copy(address, into, false);
        }

        void write(long address, byte[] from) {
            copy(address, from, true);
        }

        private void copy(long address, byte[] buffer, boolean write) {
            long firstPage = range.address() / pageBytes;
            for (int done = 0; done < buffer.length; ) {
                long at = address + done;
                int offset = (int) (at % pageBytes);
                int length = Math.min(pageBytes - offset, buffer.length - done);
                byte[] page = pages.get((int) (at / pageBytes - firstPage)).bytes();
                if (write) {
                    System.arraycopy(buffer, done, page, offset, length);
                } else {
                    System.arraycopy(page, offset, buffer, done, length);
                }
                done += length;
            }
        }
    }

    private final ModelTransport owner;
    private final List<Section> sections = new ArrayList<>();
    private final List<MemoryRange> ranges;
    private final Set<ModelPeer> mappers = new LinkedHashSet<>();
    private boolean revoked;
    private boolean closed;
    private int lists;

    ModelRegistration(ModelTransport owner, List<MemoryRange> ranges, ModelMemory memory) {
        this.owner = owner;
        this.ranges = List.copyOf(ranges);
        try {
            for (MemoryRange range : ranges) {
                sections.add(
                        new Section(
                                owner.fabric().nextIdentity(),
                                range,
                                memory.pin(range.address(), range.lengthBytes()),
                                memory.pageBytes()));
            }
        } catch (IllegalStateException e) {
            sections.forEach(section -> memory.unpin(section.pages()));
            throw new TransportException("register: " + ranges + " is not mapped", e);
        }
    }

    List<Section> sections() {
        return sections;
    }

    @Nullable Section section(long key) {
        for (Section section : sections) {
            if (section.key() == key) {
                return section;
            }
        }
        return null;
    }

    @Nullable Section covering(long address, long lengthBytes) {
        for (Section section : sections) {
            if (section.covers(address, lengthBytes)) {
                return section;
            }
        }
        return null;
    }

    void addList(int change) {
        lists += change;
    }

    @Override
    public List<MemoryRange> ranges() {
        return ranges;
    }

    boolean isRevoked() {
        return revoked;
    }

    /** Another reader maps these pages, or does not any more. */
    void mappedBy(ModelPeer peer, boolean maps) {
        if (maps) {
            mappers.add(peer);
        } else {
            mappers.remove(peer);
        }
    }

    @Override
    public List<String> revoke() {
        synchronized (owner.fabric()) {
            revoked = true;
            List.copyOf(mappers).forEach(ModelPeer::revoke);
            return mappers.stream().map(ModelPeer::holder).toList();
        }
    }

    @Override
    public void readmit() {
        synchronized (owner.fabric()) {
            revoked = false;
        }
    }

    @Override
    public void close() {
        synchronized (owner.fabric()) {
            if (closed) {
                return;
            }
            if (lists > 0) {
                throw new IllegalStateException(
                        "deregister: " + lists + " prepared lists still use this memory");
            }
            owner.faults().beforeDeregistration();
            List.copyOf(mappers).forEach(ModelPeer::obeyIfDue);
            if (!mappers.isEmpty()) {
                throw new TransportException(
                        "deregister: still mapped by "
                                + mappers.stream().map(ModelPeer::holder).toList()
                                + "; revoke it first, until nobody is left");
            }
            end();
        }
    }

    /** Ends it unconditionally, as the process's end does. */
    void end() {
        if (!closed) {
            closed = true;
            owner.forget(this);
        }
    }
}
