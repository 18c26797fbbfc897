package dev.dormouse.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Whole clusters from seeds; see docs/testing.md. */
final class SimulationTest {
    private static final int FIXED_SEEDS = 500;
    private static final int RANDOM_SEEDS = 10;

    @Test
    void everyWorldKeepsEveryRule() {
        List<Simulation.Report> reports = new ArrayList<>();
        for (long seed = 1; seed <= FIXED_SEEDS; seed++) {
            reports.add(Simulation.run(seed));
        }
        Simulation.Coverage all =
                reports.stream()
                        .map(Simulation.Report::coverage)
                        .reduce(Simulation.Coverage.NONE, Simulation.Coverage::plus);

        // What never happened was not tested.
        assertThat(all.answered()).isGreaterThan(5_000);
        assertThat(all.refused()).isGreaterThan(1_000);
        assertThat(all.remoteTokens()).as("read, not computed twice").isGreaterThan(50_000);
        assertThat(all.firstTokens()).as("taken, not chosen twice").isGreaterThan(5_000);
        assertThat(all.turnTokens()).as("read back, not computed twice").isGreaterThan(10_000);
        assertThat(all.handshakes()).isGreaterThan(2_000);
        assertThat(all.transitions()).isGreaterThan(2_000);
        assertThat(all.deaths()).isGreaterThan(100);
        assertThat(all.preemptions()).isGreaterThan(100);
        assertThat(all.prefixHits()).isGreaterThan(1_000);
        assertThat(all.failedReads()).isGreaterThan(100);
        assertThat(all.failedHandshakes()).isGreaterThan(100);
        assertThat(all.expiredHolds()).isGreaterThan(100);
        assertThat(all.revokedHolds()).isGreaterThan(10);
        assertThat(all.revokedMappings()).isGreaterThan(100);
    }

    @Test
    void freshWorldsKeepEveryRuleToo() {
        Random random = new Random();
        for (int i = 0; i < RANDOM_SEEDS; i++) {
            // A failure names its seed.
            assertThat(Simulation.run(random.nextInt(Integer.MAX_VALUE)).events()).isPositive();
        }
    }

    @Test
    void theSameSeedLivesTheSameLife() {
        for (long seed = 1; seed <= 10; seed++) {
            assertThat(Simulation.run(seed)).isEqualTo(Simulation.run(seed));
        }
    }
}
