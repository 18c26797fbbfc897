package dev.dormouse.foreign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class MemoryFileTest {
    private static final long PAGE = Libc.pageSizeBytes();

    private final int file = Libc.createMemoryFile("file-test", Libc.MFD_ALLOW_SEALING);

    @AfterEach
    void close() {
        Libc.close(file);
    }

    @Test
    void aSealedFileKeepsItsLength() {
        Libc.allocate(file, 0, 0, 2 * PAGE);
        int seals = MemoryFile.F_SEAL_SHRINK | MemoryFile.F_SEAL_GROW | MemoryFile.F_SEAL_SEAL;
        assertThat(MemoryFile.seals(file)).isZero();

        MemoryFile.seal(file, seals);

        assertThat(MemoryFile.seals(file)).isEqualTo(seals);
        for (long length : new long[] {PAGE, 3 * PAGE}) {
            assertThatExceptionOfType(LibcException.class)
                    .isThrownBy(() -> Libc.truncate(file, length))
                    .satisfies(e -> assertThat(e.errnoName()).isEqualTo("EPERM"));
        }
        assertThat(MemoryFile.status(file).sizeBytes()).isEqualTo(2 * PAGE);
    }

    @Test
    void statusTellsSizeAndHolesAndWhichFileItIs() {
        Libc.truncate(file, 4 * PAGE);
        Libc.allocate(file, 0, 0, PAGE);
        MemoryFile.Status status = MemoryFile.status(file);
        assertThat(status.sizeBytes()).isEqualTo(4 * PAGE);
        assertThat(status.allocatedBytes()).isEqualTo(PAGE);

        int same = MemoryFile.duplicate(file);
        int other = Libc.createMemoryFile("file-test", 0);
        assertThat(MemoryFile.status(same)).isEqualTo(status);
        assertThat(MemoryFile.status(other).inode()).isNotEqualTo(status.inode());
        Libc.close(same);
        Libc.close(other);
    }

    @Test
    void aDescriptorToReadDoesNotWrite() {
        Libc.truncate(file, PAGE);
        int readOnly = MemoryFile.openReadOnly(file);
        assertThat(MemoryFile.isWritable(file)).isTrue();
        assertThat(MemoryFile.isWritable(readOnly)).isFalse();
        Libc.unmap(Libc.map(PAGE, Libc.PROT_READ, Libc.MAP_SHARED, readOnly, 0));
        assertThatExceptionOfType(LibcException.class)
                .isThrownBy(() -> Libc.map(PAGE, Libc.PROT_WRITE, Libc.MAP_SHARED, readOnly, 0))
                .satisfies(e -> assertThat(e.errnoName()).isEqualTo("EACCES"));
        Libc.close(readOnly);
    }

    @Test
    void onlyFilesInMemoryHaveSealsAndOrdinaryPages() {
        int socket = UnixSocket.listen("dormouse-test-" + UUID.randomUUID(), 1);
        assertThatExceptionOfType(LibcException.class)
                .isThrownBy(() -> MemoryFile.seals(socket))
                .satisfies(e -> assertThat(e.errnoName()).isEqualTo("EINVAL"));
        assertThat(MemoryFile.hasOrdinaryPages(file)).isTrue();
        assertThat(MemoryFile.hasOrdinaryPages(socket)).isFalse();
        Libc.close(socket);
    }
}
