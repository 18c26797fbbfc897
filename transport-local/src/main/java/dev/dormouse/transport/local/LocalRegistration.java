package dev.dormouse.transport.local;

import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import java.util.List;

/**
 * Memory that peers may map. What peers know it by is a token, which no other registration of the
 * same memory has: one that was made before a sleep meets nothing after it.
 */
final class LocalRegistration implements Registration {
    private final OwnerSide owner;
    private final List<MemoryRange> ranges;
    private final SharedBacking backing;
    private final Token token = Token.random();

    /** Guarded by the owner's side. */
    private boolean admitting = true;

    private boolean closed;
    private int lists;

    LocalRegistration(OwnerSide owner, List<MemoryRange> ranges, SharedBacking backing) {
        this.owner = owner;
        this.ranges = List.copyOf(ranges);
        this.backing = backing;
    }

    Token token() {
        return token;
    }

    SharedBacking backing() {
        return backing;
    }

    boolean isAdmitting() {
        return admitting;
    }

    void setAdmitting(boolean admits) {
        admitting = admits;
    }

    void addList(int change) {
        lists += change;
    }

    boolean isClosed() {
        return closed;
    }

    /** Whether all of the row lies in one of the ranges. */
    boolean covers(BlockRow row) {
        return !closed && ranges.stream().anyMatch(range -> covers(range, row));
    }

    private static boolean covers(MemoryRange range, BlockRow row) {
        long lengthBytes = row.spanBytes();
        return row.kind() == range.kind()
                && row.deviceId() == range.deviceId()
                && row.address() >= range.address()
                && lengthBytes <= range.lengthBytes()
                && row.address() - range.address() <= range.lengthBytes() - lengthBytes;
    }

    @Override
    public List<MemoryRange> ranges() {
        return ranges;
    }

    @Override
    public List<String> revoke() {
        return owner.revoke(this);
    }

    @Override
    public void readmit() {
        owner.readmit(this);
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        if (lists > 0) {
            throw new IllegalStateException(
                    "deregister: " + lists + " prepared lists still use this memory");
        }
        owner.remove(this);
        closed = true;
    }

    @Override
    public String toString() {
        return "registration of " + ranges;
    }
}
