package dev.dormouse.transport.nixl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Natives;
import org.junit.jupiter.api.Test;

/** An engine that sleeps and wakes many times while another one reads from it after each wake. */
class WakeCycleTest {
    private static final int CYCLES = Integer.getInteger("dormouse.wake.cycles", 200);
    private static final int WARM_CYCLES = 20;
    private static final int REQUESTS = 16;

    /** What comes and goes at any time: connections of the side channel, threads of its pool. */
    private static final int IN_USE = 8;

    @Test
    void eachWakeCostsOneHandshakeAndNothingElse() {
        Natives.nixlDirectory();
        try (EngineProcess owner = EngineProcess.start(Tls.CMA, "P", 0, 30, 30);
                EngineProcess reader = EngineProcess.start(Tls.CMA, "D", 0, 30, 30)) {
            cycle(owner, reader, 0);
            int before = reader.handshakes();
            for (int cycle = 1; cycle < WARM_CYCLES; cycle++) {
                cycle(owner, reader, cycle);
            }
            ProcessCounts ownerWarm = owner.counts();
            ProcessCounts readerWarm = reader.counts();
            for (int cycle = WARM_CYCLES; cycle < CYCLES; cycle++) {
                cycle(owner, reader, cycle);
            }

            assertThat(reader.handshakes() - before).isEqualTo(CYCLES - 1);
            assertFlat(ownerWarm, owner.counts());
            assertFlat(readerWarm, reader.counts());
        }
    }

    private static void assertFlat(ProcessCounts warm, ProcessCounts now) {
        assertThat(now.descriptors()).isLessThanOrEqualTo(warm.descriptors() + IN_USE);
        assertThat(now.threads()).isLessThanOrEqualTo(warm.threads() + IN_USE);
    }

    private static void cycle(EngineProcess owner, EngineProcess reader, int cycle) {
        owner.sleep();
        owner.wake();
        int first = cycle * REQUESTS;
        reader.decode(first, owner.prefill(first, REQUESTS));
        assertThat(reader.await()).as("cycle " + cycle).isEqualTo("{GOOD=" + REQUESTS + "}");
    }
}
