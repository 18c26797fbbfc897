package dev.dormouse.transport.local;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.MemoryFile;
import dev.dormouse.testkit.ContractNode;
import dev.dormouse.transport.MemoryRange;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/** An agent whose memory lies in a file in memory of its own, each piece on pages of its own. */
final class MemfdNode implements ContractNode {
    private static final long FILE_BYTES = 16L << 20;
    private static final long PAGE_BYTES = Libc.pageSizeBytes();
    private static final int FIXED_LENGTH =
            MemoryFile.F_SEAL_SHRINK | MemoryFile.F_SEAL_GROW | MemoryFile.F_SEAL_SEAL;

    private final int file = Libc.createMemoryFile("dormouse-test", Libc.MFD_ALLOW_SEALING);
    private final MemorySegment memory;
    private final LocalTransport transport;
    private final List<MemorySegment> pieces = new ArrayList<>();
    private long usedBytes;
    private boolean open = true;

    MemfdNode(SegmentAccess access, Limits limits) {
        Libc.allocate(file, 0, 0, FILE_BYTES);
        MemoryFile.seal(file, FIXED_LENGTH);
        memory = Libc.map(FILE_BYTES, Libc.PROT_READ | Libc.PROT_WRITE, Libc.MAP_SHARED, file, 0);
        transport =
                LocalTransport.open(
                        LocalTransportOptions.of(this::export).withAccess(access), limits);
    }

    MemfdNode() {
        this(SegmentAccess.READ_WRITE, Limits.USUAL);
    }

    private BackingFile export(MemoryRange range) {
        long offset = range.address() - memory.address();
        return new BackingFile(MemoryFile.duplicate(file), offset, FILE_BYTES - offset);
    }

    @Override
    public LocalTransport transport() {
        return transport;
    }

    @Override
    public long allocate(long lengthBytes) {
        MemorySegment piece = memory.asSlice(usedBytes, lengthBytes);
        usedBytes += Math.ceilDiv(lengthBytes, PAGE_BYTES) * PAGE_BYTES;
        pieces.add(piece);
        return piece.address();
    }

    @Override
    public void write(long address, byte[] bytes) {
        MemorySegment.copy(
                bytes, 0, memory, ValueLayout.JAVA_BYTE, address - memory.address(), bytes.length);
    }

    @Override
    public byte[] read(long address, int lengthBytes) {
        return memory.asSlice(address - memory.address(), lengthBytes)
                .toArray(ValueLayout.JAVA_BYTE);
    }

    @Override
    public void close() {
        if (open) {
            open = false;
            transport.close();
            Libc.unmap(memory);
            Libc.close(file);
        }
    }
}
