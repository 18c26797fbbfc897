package dev.dormouse.transport.nixl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cuda.CudaContext;
import dev.dormouse.cuda.CudaDriver;
import dev.dormouse.cuda.DeviceBuffer;
import dev.dormouse.memory.DeviceMemory;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.memory.Retention;
import dev.dormouse.testkit.CudaDrivers;
import dev.dormouse.testkit.Natives;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** On the machine's GPU, or the stand-in. */
final class DevicePiecesTest {
    private static final long UNIT = 2L << 20;
    private static final MemoryTag TAG = MemoryTag.KV_CACHE;

    private final List<String> warnings = new ArrayList<>();
    private final DevicePieces pieces = new DevicePieces(warnings::add);
    private CudaContext context;

    @BeforeEach
    void retain() {
        CudaDrivers.requireAny();
        context = CudaContext.retain(CudaDriver.load().device(0));
    }

    @AfterEach
    void release() {
        if (context != null) {
            context.close();
        }
    }

    @Test
    void memoryThatCanBeUnmappedIsTakenPieceByPieceAndWarnedOfOnce() {
        try (DeviceMemory memory =
                DeviceMemory.reserve(context, Map.of(TAG, 5 * UNIT), 2 * UNIT, System::nanoTime)) {
            memory.wake(Set.of(TAG));
            long start = memory.address(TAG);
            MemoryRange range = new MemoryRange(start + 1, 5 * UNIT - 1, MemoryKind.VRAM, 0);

            assertThat(pieces.of(range))
                    .containsExactly(
                            new MemoryRange(start + 1, 2 * UNIT - 1, MemoryKind.VRAM, 0),
                            new MemoryRange(start + 2 * UNIT, 2 * UNIT, MemoryKind.VRAM, 0),
                            new MemoryRange(start + 4 * UNIT, UNIT, MemoryKind.VRAM, 0));
            assertThat(warnings)
                    .singleElement()
                    .asString()
                    .contains("cuda_ipc cannot open handles", "--kv-transport auto or local");

            memory.sleep(Set.of(TAG), Retention.DISCARD);
            memory.wake(Set.of(TAG));
            assertThat(pieces.of(range)).hasSize(3);
            assertThat(warnings).hasSize(1);
        }
    }

    @Test
    void anAgentIsOpenedOnAThreadThatHadAContext() {
        Natives.nixlDirectory();
        context.synchronize();
        context.close();

        // UCX takes the thread's current context for a living one
        NixlTransport.open("UCX", UcxSleepDefaults.applied(Map.of(), System.getenv())).close();
    }

    @Test
    void otherMemoryIsNotWarnedOf() {
        try (DeviceBuffer buffer = DeviceBuffer.allocate(context, 4_096)) {
            MemoryRange device =
                    new MemoryRange(buffer.span().address(), 4_096, MemoryKind.VRAM, 0);
            assertThat(pieces.of(device).stream().mapToLong(MemoryRange::lengthBytes).sum())
                    .isEqualTo(4_096);
            MemoryRange host = new MemoryRange(4_096, 4_096, MemoryKind.DRAM, 0);
            assertThat(pieces.of(host)).containsExactly(host);
            MemoryRange elsewhere = new MemoryRange(4_096, 4_096, MemoryKind.VRAM, 63);
            assertThat(pieces.of(elsewhere)).containsExactly(elsewhere);
        }
        assertThat(warnings).isEmpty();
    }
}
