package dev.dormouse.nixl;

import dev.dormouse.foreign.Libc;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Registered host memory whose pages can be replaced at the same address. */
final class Region implements AutoCloseable {
    private static final int READ_WRITE = Libc.PROT_READ | Libc.PROT_WRITE;
    private static final int ANONYMOUS = Libc.MAP_PRIVATE | Libc.MAP_ANONYMOUS;

    final MemorySegment memory;
    private final NixlAgent agent;
    private Registration registration;
    private long deviceId;

    Region(NixlAgent agent, long bytes) {
        this.agent = agent;
        this.memory = Libc.map(bytes, READ_WRITE, ANONYMOUS, -1, 0);
        this.registration = agent.register(MemoryType.DRAM, List.of(MemoryRange.host(memory)));
    }

    Registration registration() {
        return registration;
    }

    long deviceId() {
        return deviceId;
    }

    /** Fresh pages, registered again. */
    void replacePages(long newDeviceId) {
        registration.close();
        Libc.mapOver(memory, READ_WRITE, ANONYMOUS, -1, 0);
        deviceId = newDeviceId;
        registration =
                agent.register(MemoryType.DRAM, List.of(new MemoryRange(memory, newDeviceId)));
    }

    /** {@code count} blocks of {@code lengthBytes}, one after the other from the start. */
    BlockList blocks(long lengthBytes, int count) {
        return BlockList.builder(MemoryType.DRAM)
                .addStrided(memory.address(), lengthBytes, lengthBytes, count, deviceId)
                .build();
    }

    @Override
    public void close() {
        registration.close();
        Libc.unmap(memory);
    }
}
