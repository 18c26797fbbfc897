package dev.dormouse.foreign;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

class ProcessCpuClockTest {
    @Test
    void workOfAThreadCountsAtLeastAsMuchAsTheThreadsOwnTime() {
        var threads = ManagementFactory.getThreadMXBean();
        long before = ProcessCpuClock.nanos();
        long own = threads.getCurrentThreadCpuTime();
        long value = before;
        while (threads.getCurrentThreadCpuTime() - own < 2_000_000) {
            value = value * 31 + 7;
        }
        assertThat(ProcessCpuClock.nanos() - before).as("%d", value).isGreaterThan(2_000_000);
    }
}
