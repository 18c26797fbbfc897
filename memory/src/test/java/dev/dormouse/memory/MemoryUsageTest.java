package dev.dormouse.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class MemoryUsageTest {
    private static final String ROLLUP =
            """
            00400000-7fff1d5c9000 ---p 00000000 00:00 0                          [rollup]
            Rss:             2051700 kB
            Pss:             1900312 kB
            Pss_Dirty:           112 kB
            Pss_Anon:         900000 kB
            Pss_File:            200 kB
            Pss_Shmem:       1000112 kB
            Shared_Clean:       1548 kB
            Anonymous:        900004 kB
            AnonHugePages:         8 kB
            Swap:                 16 kB
            SwapPss:               4 kB
            """;

    @Test
    void fieldsAreReadByTheirFullNames() {
        assertThat(MemoryUsage.parse(ROLLUP))
                .isEqualTo(
                        new MemoryUsage(
                                2051700L * 1024,
                                1900312L * 1024,
                                1000112L * 1024,
                                900004L * 1024,
                                16 * 1024));
    }

    @Test
    void aMissingOrDamagedFieldIsNamed() {
        assertThatThrownBy(() -> MemoryUsage.parse(ROLLUP.replace("Pss_Shmem", "Other")))
                .isInstanceOf(MemoryException.class)
                .hasMessageContaining("no field Pss_Shmem");
        assertThatThrownBy(() -> MemoryUsage.parse(ROLLUP.replace("2051700 kB", "x kB")))
                .hasMessageContaining("no field Rss");
        assertThatThrownBy(() -> MemoryUsage.parse(ROLLUP.replace("2051700 kB", "2051700 MB")))
                .hasMessageContaining("no field Rss");
    }

    @Test
    void ownProcessIsSeenAlikeByBothReaders() {
        MemoryUsage own = MemoryUsage.ofThisProcess();
        MemoryUsage byPid = MemoryUsage.ofProcess(ProcessHandle.current().pid());

        assertThat(own.rssBytes()).isGreaterThanOrEqualTo(own.pssBytes());
        assertThat(own.pssBytes()).isGreaterThan(10L << 20);
        assertThat(byPid.pssBytes()).isBetween(own.pssBytes() / 2, own.pssBytes() * 2);
    }

    @Test
    void aProcessThatIsNotThereIsNamed() {
        assertThatThrownBy(() -> MemoryUsage.ofProcess(1L << 40))
                .isInstanceOf(MemoryException.class)
                .hasMessageContaining("/proc/1099511627776/smaps_rollup");
    }
}
