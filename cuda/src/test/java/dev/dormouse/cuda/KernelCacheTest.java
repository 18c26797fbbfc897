package dev.dormouse.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class KernelCacheTest {
    private static final KernelTarget TARGET = new KernelTarget("sm_90");

    @TempDir private Path folder;

    private final Nvrtc nvrtc = NvrtcNative.required();

    @Test
    void aKernelIsCompiledOnce() throws IOException {
        KernelCache cache = new KernelCache(folder.resolve("kernels"), nvrtc);
        byte[] first = cache.image(source("1"), TARGET, List.of());
        Path entry = onlyEntry(folder.resolve("kernels"));
        Object written = Files.getLastModifiedTime(entry);

        byte[] second = cache.image(source("1"), TARGET, List.of());

        assertThat(second).isEqualTo(first).startsWith(0x7f, 'E', 'L', 'F');
        assertThat(Files.getLastModifiedTime(entry)).isEqualTo(written);
        assertThat(entry.getFileName().toString()).matches("[0-9a-f]{64}\\.kernel");
    }

    @Test
    void theEntryIsWhatIsLoaded() throws IOException {
        KernelCache cache = new KernelCache(folder, nvrtc);
        byte[] one = cache.image(source("1"), TARGET, List.of());
        Path entry = onlyEntry(folder);
        byte[] other = nvrtc.compile(source("2"), TARGET, List.of());
        Path twin = folder.resolve("twin");
        new KernelCache(twin, nvrtc).image(source("2"), TARGET, List.of());
        Files.copy(onlyEntry(twin), entry, java.nio.file.StandardCopyOption.REPLACE_EXISTING);

        assertThat(cache.image(source("1"), TARGET, List.of())).isEqualTo(other).isNotEqualTo(one);
    }

    @Test
    void sourceOptionsAndTargetMakeTheKey() throws IOException {
        KernelCache cache = new KernelCache(folder, nvrtc);
        cache.image(source("1"), TARGET, List.of());
        cache.image(source("2"), TARGET, List.of());
        cache.image(source("1"), TARGET, List.of("-DX=1"));
        cache.image(source("1"), TARGET, List.of("-DX", "-DY"));
        cache.image(source("1"), new KernelTarget("sm_80"), List.of());

        try (var entries = Files.list(folder)) {
            assertThat(entries).hasSize(5);
        }
    }

    @Test
    void aDamagedEntryIsCompiledAgain() throws IOException {
        KernelCache cache = new KernelCache(folder, nvrtc);
        byte[] good = cache.image(source("1"), TARGET, List.of());
        Path entry = onlyEntry(folder);
        byte[] bytes = Files.readAllBytes(entry);
        byte[] flipped = bytes.clone();
        flipped[bytes.length / 2] ^= 1;

        for (byte[] damaged : List.of(flipped, new byte[0], java.util.Arrays.copyOf(bytes, 100))) {
            Files.write(entry, damaged);
            assertThat(cache.image(source("1"), TARGET, List.of())).isEqualTo(good);
            assertThat(Files.readAllBytes(entry)).isEqualTo(bytes);
        }
    }

    @Test
    void aFolderThatCannotBeWrittenCostsTimeOnly() throws IOException {
        Path file = Files.writeString(folder.resolve("file"), "");
        KernelCache cache = new KernelCache(file.resolve("kernels"), nvrtc);

        assertThat(cache.image(source("1"), TARGET, List.of())).isNotEmpty();
    }

    @Test
    void aKernelThatDoesNotCompileLeavesNoEntry() throws IOException {
        KernelCache cache = new KernelCache(folder, nvrtc);

        assertThatThrownBy(() -> cache.image(source("undefined"), TARGET, List.of()))
                .isInstanceOf(CudaException.class);
        try (var entries = Files.list(folder)) {
            assertThat(entries).isEmpty();
        }
    }

    private static KernelSource source(String value) {
        return new KernelSource(
                "set.cu", "extern \"C\" __global__ void set(int* x) { *x = " + value + "; }");
    }

    private static Path onlyEntry(Path directory) throws IOException {
        try (var entries = Files.list(directory)) {
            List<Path> files = entries.filter(Files::isRegularFile).toList();
            assertThat(files).hasSize(1);
            return files.getFirst();
        }
    }
}
