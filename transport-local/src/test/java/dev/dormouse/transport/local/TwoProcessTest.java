package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.ChildJvm;
import dev.dormouse.testkit.CudaDrivers;
import dev.dormouse.transport.MemoryKind;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** An owner and a reader in processes of their own, either of which is stopped or killed. */
@ParameterizedClass
@EnumSource
class TwoProcessTest {
    private static final String NOBODY = "[]";

    @TempDir private static Path kernels;

    private final MemoryKind kind;

    private ChildJvm owner;
    private ChildJvm reader;

    TwoProcessTest(MemoryKind kind) {
        this.kind = kind;
    }

    @BeforeEach
    void startOwnerAndReader() {
        if (kind == MemoryKind.VRAM) {
            CudaDrivers.requireAny();
        }
        owner = node("owner");
        reader = node("reader");
    }

    @AfterEach
    void end() {
        owner.close();
        reader.close();
    }

    private ChildJvm node(String name) {
        return ChildJvm.start(
                name, LocalNode.class, CudaDrivers.environment(), kind.name(), kernels.toString());
    }

    private void loadAndRead(long seed) {
        assertThat(owner.ask("fill " + seed)).isEqualTo("filled");
        assertThat(reader.ask("load " + owner.ask("tell"))).isEqualTo("loaded");
        assertThat(reader.ask("read " + seed)).isEqualTo("RIGHT");
        assertThat(reader.ask("mappings")).isEqualTo("1");
    }

    private void sleepOwner() {
        awaitNobody();
        assertThat(owner.ask("close")).isEqualTo("closed");
        assertThat(owner.ask("sleep")).isEqualTo("asleep");
    }

    private void awaitNobody() {
        Await.until("nobody uses the memory", () -> owner.ask("revoke").equals(NOBODY));
    }

    @Test
    void aSleepersPagesAreMappedByNobodyAndAWokenOneIsLoadedAnew() {
        for (int cycle = 1; cycle <= 3; cycle++) {
            loadAndRead(cycle);
            String before = owner.ask("tell");
            sleepOwner();
            assertThat(reader.ask("mappings")).isEqualTo("0");
            assertThat(reader.ask("connected")).isEqualTo("false");
            assertThat(reader.ask("read " + cycle)).isEqualTo("FAILED");
            assertThat(owner.ask("wake")).isEqualTo("awake");
            assertThat(owner.ask("fill " + (cycle + 100))).isEqualTo("filled");
            awaitMappedAhead();
            assertThat(reader.ask("read " + cycle)).isEqualTo("FAILED");
            assertThat(reader.ask("load " + before)).contains("registered anew, or sleeps");
        }
        assertThat(owner.ask("messages")).isEqualTo("3");
    }

    /** Without a load: the reader heard of the memory over the connection that it has. */
    private void awaitMappedAhead() {
        Await.until("it is mapped", () -> reader.ask("mappings").equals("1"));
    }

    private void sleepAndWakeOwner() {
        sleepOwner();
        assertThat(owner.ask("wake")).isEqualTo("awake");
        awaitMappedAhead();
    }

    @Test
    void aReaderThatIsStoppedWhileItStandsByHoldsNothing() {
        loadAndRead(1);
        sleepOwner();
        reader.freeze();
        for (int wake = 0; wake < 3; wake++) {
            assertThat(owner.ask("wake")).isEqualTo("awake");
            assertThat(owner.ask("revoke")).isEqualTo(NOBODY);
            sleepOwner();
        }
        assertThat(owner.ask("wake")).isEqualTo("awake");
        reader.thaw();
        loadAndRead(2);
    }

    @Test
    void aReaderThatHasMappedAheadHoldsTheMemory() {
        loadAndRead(1);
        sleepAndWakeOwner();
        reader.freeze();
        assertThat(owner.ask("revoke")).contains("process " + reader.pid());
        assertThat(owner.ask("close")).contains("still mapped by");
        reader.thaw();
        sleepOwner();
        assertThat(reader.ask("mappings")).isEqualTo("0");
        assertThat(owner.ask("wake")).isEqualTo("awake");
        loadAndRead(2);
    }

    @Test
    void aReaderThatIsKilledWhenItHasMappedAheadHoldsNothing() {
        loadAndRead(1);
        sleepAndWakeOwner();
        reader.kill();
        sleepOwner();
    }

    @Test
    void aReaderThatIsKilledWhileItStandsByHoldsNothing() {
        loadAndRead(1);
        sleepOwner();
        reader.kill();
        assertThat(owner.ask("wake")).isEqualTo("awake");
        reader = node("reader again");
        loadAndRead(2);
        sleepOwner();
    }

    @Test
    void whatWasMappedAheadGoesWithItsOwner() {
        loadAndRead(1);
        sleepAndWakeOwner();
        String told = owner.ask("tell");
        owner.kill();
        Await.until("unmapped", () -> reader.ask("mappings").equals("0"));
        assertThat(reader.ask("load " + told)).contains("its process has ended");
    }

    @Test
    void noReadThatEndsWellHasBytesFromAfterTheRevocation() {
        for (int cycle = 1; cycle <= 5; cycle++) {
            loadAndRead(cycle);
            reader.tell("stream " + cycle);
            assertThat(reader.answer()).isEqualTo("streaming");
            awaitNobody();
            assertThat(owner.ask("fill " + (cycle + 1000))).isEqualTo("filled");
            reader.tell("end");
            assertThat(reader.answer()).doesNotContain("OTHER").doesNotContain("STUCK");
            assertThat(owner.ask("readmit")).isEqualTo("readmitted");
        }
    }

    @Test
    void aKilledReaderHoldsNothing() {
        loadAndRead(1);
        reader.kill();
        sleepOwner();
    }

    @Test
    void aReaderThatIsKilledWhileItReadsHoldsNothing() {
        loadAndRead(1);
        reader.tell("stream 1");
        assertThat(reader.answer()).isEqualTo("streaming");
        reader.kill();
        sleepOwner();
    }

    @Test
    void aStoppedReaderIsNamedUntilItGoesOn() {
        loadAndRead(1);
        reader.freeze();
        for (int i = 0; i < 3; i++) {
            assertThat(owner.ask("revoke")).contains("process " + reader.pid());
            assertThat(owner.ask("close"))
                    .contains("still mapped by")
                    .contains("process " + reader.pid());
        }
        assertThat(owner.ask("readmit")).isEqualTo("readmitted");
        reader.thaw();
        sleepOwner();
        assertThat(reader.ask("mappings")).isEqualTo("0");
    }

    @Test
    void aReaderThatIsKilledWhileStoppedHoldsNothing() {
        loadAndRead(1);
        reader.tell("stream 1");
        assertThat(reader.answer()).isEqualTo("streaming");
        reader.freeze();
        assertThat(owner.ask("revoke")).contains("process " + reader.pid());
        reader.kill();
        sleepOwner();
    }

    @Test
    void aKilledOwnersPagesAreUnmappedAndReadsFail() {
        loadAndRead(1);
        owner.kill();
        Await.until("disconnected", () -> reader.ask("connected").equals("false"));
        assertThat(reader.ask("read 1")).isEqualTo("FAILED");
        Await.until("unmapped", () -> reader.ask("mappings").equals("0"));
    }

    @Test
    void readsFromAnOwnerThatIsKilledFail() {
        loadAndRead(1);
        String told = owner.ask("tell");
        reader.tell("stream 1");
        assertThat(reader.answer()).isEqualTo("streaming");
        owner.kill();
        reader.tell("end");
        assertThat(reader.answer()).doesNotContain("OTHER").doesNotContain("STUCK");
        Await.until("unmapped", () -> reader.ask("mappings").equals("0"));
        assertThat(reader.ask("load " + told)).contains("its process has ended");
        owner = node("owner again");
        loadAndRead(2);
    }

    @Test
    void aStoppedOwnerStopsNobody() {
        loadAndRead(1);
        String told = owner.ask("tell");
        owner.freeze();
        assertThat(reader.ask("read 1")).isEqualTo("RIGHT");
        assertThat(reader.ask("drop")).isEqualTo("dropped");
        assertThat(reader.ask("mappings")).isEqualTo("0");
        assertThat(reader.ask("load " + told)).contains("no answer came").contains("stopped");
        owner.thaw();
        AtomicInteger messages = new AtomicInteger();
        Await.until(
                "both reads were told",
                () -> messages.addAndGet(Integer.parseInt(owner.ask("messages"))) == 2);
        sleepOwner();
    }

    @Test
    void theDeviceHasItsMemoryBackWhileAReaderIsThere() {
        Assumptions.assumeTrue(kind == MemoryKind.VRAM, "of the host others take memory, too");
        for (int cycle = 1; cycle <= 3; cycle++) {
            loadAndRead(cycle);
            long awake = Long.parseLong(owner.ask("free"));
            sleepOwner();
            assertThat(Long.parseLong(owner.ask("free")) - awake).isEqualTo(NodeMemory.BYTES);
            assertThat(owner.ask("wake")).isEqualTo("awake");
        }
    }
}
