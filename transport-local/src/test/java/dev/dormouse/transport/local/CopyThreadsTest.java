package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class CopyThreadsTest {
    private static long running() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith(CopyThreads.NAME))
                .count();
    }

    @Test
    void thereAreNoMoreThanProcessorsAndFourAtMost() {
        for (int processors : new int[] {1, 2, 3, 4, 5, 64}) {
            long before = running();
            try (CopyThreads threads = CopyThreads.forProcessors(processors)) {
                assertThat(threads).isNotNull();
                assertThat(running() - before).isEqualTo(Math.min(processors, 4));
            }
        }
    }

    @Test
    void aCloseLeavesNoThread() {
        long before = running();
        CopyThreads threads = CopyThreads.forProcessors(4);
        threads.close();
        threads.close();
        assertThat(running()).isEqualTo(before);
    }
}
