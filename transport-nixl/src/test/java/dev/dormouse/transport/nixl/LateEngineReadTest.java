package dev.dormouse.transport.nixl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Natives;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Requests that reach an engine asleep, woken, restarted, shutting down or stopped, with the real
 * connector on both sides: the bytes are right, or the request fails.
 */
class LateEngineReadTest {
    private static final int SHORT_LEASE_SECONDS = 3;
    private static final int LEASE_SECONDS = 30;
    private static final int READ_TIMEOUT_SECONDS = 30;
    private static final Map<Tls, EngineProcess> READERS = new EnumMap<>(Tls.class);

    private final Deque<EngineProcess> others = new ArrayDeque<>();

    @BeforeAll
    static void startReaders() {
        Natives.nixlDirectory();
        for (Tls tls : Tls.values()) {
            READERS.put(tls, EngineProcess.start(tls, "D", 0, LEASE_SECONDS, READ_TIMEOUT_SECONDS));
        }
    }

    @AfterAll
    static void endReaders() {
        READERS.values().forEach(EngineProcess::close);
    }

    @AfterEach
    void endOthers() {
        others.forEach(EngineProcess::close);
    }

    @ParameterizedTest
    @EnumSource
    void aRequestThatComesAfterItsOwnerFellAsleepFailsAndTheNextOneAfterTheWakeIsRight(Tls tls) {
        EngineProcess owner = start(tls, "P", 0, SHORT_LEASE_SECONDS, READ_TIMEOUT_SECONDS);
        EngineProcess reader = reader(tls);
        assertReads(reader, owner, 100);
        String unread = owner.prefill(1, 1);

        owner.sleep();
        reader.decode(1, unread);
        assertThat(reader.await()).isEqualTo("{FAILED=1}");

        owner.wake();
        reader.decode(1, unread);
        assertThat(reader.await()).isEqualTo("{FAILED=1}");
        assertReads(reader, owner, 200);
        assertThat(owner.process().end()).as(owner.process()::output).isZero();
    }

    @ParameterizedTest
    @EnumSource
    void aRequestThatWasTakenBackFailsAlthoughItsLeaseRuns(Tls tls) {
        EngineProcess owner = start(tls, "P", 0, LEASE_SECONDS, READ_TIMEOUT_SECONDS);
        EngineProcess reader = reader(tls);
        assertThat(reader.read(owner, 1)).isEqualTo("{GOOD=1}");
        String unread = owner.prefill(2, 1);

        owner.revokeAndSleep();
        reader.decode(2, unread);
        assertThat(reader.await()).isEqualTo("{FAILED=1}");
        owner.wake();
        assertThat(reader.read(owner, 3)).isEqualTo("{GOOD=1}");
        assertThat(owner.process().end()).as(owner.process()::output).isZero();
    }

    @ParameterizedTest
    @EnumSource
    void aKilledOwnersRequestsFailAndItsSuccessorOnTheSamePortServes(Tls tls) {
        EngineProcess owner = start(tls, "P", 0, LEASE_SECONDS, READ_TIMEOUT_SECONDS);
        EngineProcess reader = reader(tls);
        assertThat(reader.read(owner, 1)).isEqualTo("{GOOD=1}");
        int port = owner.port();
        String underWay = owner.prefill(100, 32);
        String unread = owner.prefill(2, 1);

        reader.decode(100, underWay);
        owner.process().kill();
        assertThat(reader.await()).doesNotContain("WRONG").doesNotContain("QUARANTINED");
        reader.decode(2, unread);
        assertThat(reader.await()).isEqualTo("{FAILED=1}");

        EngineProcess successor = start(tls, "P", port, LEASE_SECONDS, READ_TIMEOUT_SECONDS);
        String fresh = successor.prefill(3, 1);
        reader.decode(2, unread);
        assertThat(reader.await()).isEqualTo("{FAILED=1}");
        reader.decode(3, fresh);
        assertThat(reader.await()).isEqualTo("{GOOD=1}");
        assertThat(successor.process().end()).as(successor.process()::output).isZero();
    }

    @ParameterizedTest
    @EnumSource
    void anOwnerThatShutsDownUnderReadsGivesRightBytesOrNone(Tls tls) {
        EngineProcess owner = start(tls, "P", 0, LEASE_SECONDS, READ_TIMEOUT_SECONDS);
        EngineProcess reader = reader(tls);
        assertThat(reader.read(owner, 1)).isEqualTo("{GOOD=1}");
        String underWay = owner.prefill(100, 32);
        String late = owner.prefill(2, 1);

        reader.decode(100, underWay);
        int status = owner.process().end();
        assertThat(status).as(owner.process()::output).isZero();
        assertThat(reader.await()).doesNotContain("WRONG").doesNotContain("QUARANTINED");
        reader.decode(2, late);
        assertThat(reader.await()).isEqualTo("{FAILED=1}");
    }

    @ParameterizedTest
    @EnumSource
    void aStoppedOwnersReadsFailInTimeKeepTheirBlocksAndHinderNobody(Tls tls) {
        EngineProcess stopped = start(tls, "P1", 0, LEASE_SECONDS, READ_TIMEOUT_SECONDS);
        EngineProcess running = start(tls, "P2", 0, LEASE_SECONDS, READ_TIMEOUT_SECONDS);
        EngineProcess reader = start(tls, "D2", 0, LEASE_SECONDS, 2);
        assertThat(reader.read(stopped, 1)).isEqualTo("{GOOD=1}");
        assertThat(reader.read(running, 2)).isEqualTo("{GOOD=1}");
        int blocks = reader.freeBlocks();
        String underWay = stopped.prefill(100, 32);
        String late = stopped.prefill(200, 1);

        reader.begin(100, underWay);
        stopped.process().freeze();
        reader.goOn();
        reader.decode(200, late);
        reader.decode(3, running.prefill(3, 1));
        String first = reader.await();
        assertThat(first).contains("GOOD").doesNotContain("WRONG");
        if (tls == Tls.TCP) { // over cma the kernel copies, whether the owner runs or not
            assertThat(first).contains("QUARANTINED");
            assertThat(reader.freeBlocks()).isLessThan(blocks);
        }

        stopped.process().thaw();
        assertThat(reader.settle()).doesNotContain("WRONG");
        assertThat(reader.freeBlocks()).isEqualTo(blocks);
        assertThat(reader.read(stopped, 4)).isEqualTo("{GOOD=1}");
        assertThat(stopped.process().end()).as(stopped.process()::output).isZero();
    }

    /** On a busy machine a short lease may end before its read; the next one will do. */
    private static void assertReads(EngineProcess reader, EngineProcess owner, int firstSeed) {
        String outcome = "{FAILED=1}";
        for (int i = 0; i < 10 && outcome.equals("{FAILED=1}"); i++) {
            outcome = reader.read(owner, firstSeed + i);
        }
        assertThat(outcome).isEqualTo("{GOOD=1}");
    }

    private EngineProcess start(
            Tls tls, String engineId, int port, int leaseSeconds, int readTimeoutSeconds) {
        EngineProcess started =
                EngineProcess.start(tls, engineId, port, leaseSeconds, readTimeoutSeconds);
        others.add(started);
        return started;
    }

    private static EngineProcess reader(Tls tls) {
        return Objects.requireNonNull(READERS.get(tls));
    }
}
