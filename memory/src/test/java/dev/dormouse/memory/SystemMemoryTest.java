package dev.dormouse.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SystemMemoryTest {
    private static final long GIB = 1L << 30;
    private static final String V2_MOUNT =
            "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    @TempDir Path root;

    @BeforeEach
    void machine() throws IOException {
        write(
                "proc/meminfo",
                """
                MemTotal:       33554432 kB
                MemFree:         1048576 kB
                MemAvailable:   16777216 kB
                Buffers:           12392 kB
                """);
    }

    @Test
    void withoutControlGroupsTheMachineDecides() {
        SystemMemory memory = SystemMemory.read(root);

        assertThat(memory).isEqualTo(new SystemMemory(32 * GIB, 16 * GIB, Optional.empty()));
        assertThat(memory.allocatableBytes()).isEqualTo(16 * GIB);
    }

    @Test
    void theTightestGroupOfVersionTwoCountsWithoutItsPageCache() throws IOException {
        write("proc/self/cgroup", "0::/pods/engine\n");
        write("proc/self/mountinfo", V2_MOUNT);
        write("sys/fs/cgroup/pods/memory.max", 8 * GIB + "\n");
        write("sys/fs/cgroup/pods/memory.current", 7 * GIB + "\n");
        write(
                "sys/fs/cgroup/pods/memory.stat",
                "anon 5\nfile 9\ninactive_file %d\nactive_file %d\n".formatted(GIB, GIB));
        write("sys/fs/cgroup/pods/engine/memory.max", 4 * GIB + "\n");
        write("sys/fs/cgroup/pods/engine/memory.current", "0\n");

        SystemMemory memory = SystemMemory.read(root);

        assertThat(memory.controlGroup())
                .contains(
                        new ControlGroupLimit(
                                root.resolve("sys/fs/cgroup/pods"), 8 * GIB, 5 * GIB));
        assertThat(memory.allocatableBytes()).isEqualTo(3 * GIB);
    }

    @Test
    void aGroupOfVersionOneInAContainerIsFoundBelowItsMount() throws IOException {
        write(
                "proc/self/cgroup",
                "9:name=systemd:/docker/abc\n4:cpu,memory:/docker/abc/job\n0::/\n");
        write(
                "proc/self/mountinfo",
                """
                34 31 0:31 /docker/abc /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
                35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,cpu,memory
                41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
                """);
        write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", 2 * GIB + "\n");
        write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", 3 * GIB + "\n");
        write("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 7\ntotal_inactive_file 0\n");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");

        SystemMemory memory = SystemMemory.read(root);

        assertThat(memory.controlGroup())
                .contains(
                        new ControlGroupLimit(
                                root.resolve("sys/fs/cgroup/memory/job"), 2 * GIB, 3 * GIB));
        assertThat(memory.allocatableBytes()).isZero();
    }

    @Test
    void noLimitIsNoLimit() throws IOException {
        write("proc/self/cgroup", "0::/\n");
        write("proc/self/mountinfo", V2_MOUNT + "damaged line\n");
        write("sys/fs/cgroup/memory.max", "max\n");
        write("sys/fs/cgroup/memory.current", GIB + "\n");

        assertThat(SystemMemory.read(root).controlGroup()).isEmpty();
    }

    @Test
    void aPathOutsideTheMountFallsBackToTheMount() throws IOException {
        write("proc/self/cgroup", "0::/../elsewhere\n");
        write("proc/self/mountinfo", V2_MOUNT);
        write("sys/fs/cgroup/memory.max", GIB + "\n");
        write("sys/fs/cgroup/memory.current", "0\n");

        assertThat(SystemMemory.read(root).allocatableBytes()).isEqualTo(GIB);
    }

    @Test
    void unreadableFactsAreErrors() throws IOException {
        write("proc/meminfo", "MemTotal: 1 kB\n");
        assertThatThrownBy(() -> SystemMemory.read(root))
                .isInstanceOf(MemoryException.class)
                .hasMessageContaining("MemAvailable");
        Files.delete(root.resolve("proc/meminfo"));
        assertThatThrownBy(() -> SystemMemory.read(root))
                .isInstanceOf(MemoryException.class)
                .hasMessageContaining("read ");
    }

    @Test
    void thisMachineIsPlausible() {
        SystemMemory memory = SystemMemory.read();

        assertThat(memory.availableBytes()).isPositive().isLessThan(memory.totalBytes());
        assertThat(memory.allocatableBytes()).isPositive();
    }

    private void write(String path, String text) throws IOException {
        Path file = root.resolve(path);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text);
    }
}
