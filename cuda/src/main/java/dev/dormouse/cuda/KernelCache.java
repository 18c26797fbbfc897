package dev.dormouse.cuda;

import java.io.IOException;
import java.lang.System.Logger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Compiled kernels in a folder, so that each is compiled once per machine. An entry's name is the
 * SHA-256 of source, target, options and NVRTC's version; its first 32 bytes are the SHA-256 of the
 * rest, so a damaged one is noticed and compiled again. A folder that cannot be used costs time,
 * and is no error. Safe for all threads, and for processes that share the folder.
 */
public final class KernelCache {
    private static final Logger LOGGER = System.getLogger("dormouse.cuda");
    private static final String SUFFIX = ".kernel";
    private static final int DIGEST_BYTES = 32;

    private final Path directory;
    private final Nvrtc nvrtc;

    /**
     * A cache in a folder, which is made when it is needed. Whoever can write there decides what
     * runs on the GPU: it should be the user's own.
     */
    public KernelCache(Path directory, Nvrtc nvrtc) {
        this.directory = directory;
        this.nvrtc = nvrtc;
    }

    /**
     * The kernel's image, from the folder or the compiler.
     *
     * @param options as for {@link Nvrtc#compile}
     * @throws CudaException when it does not compile
     */
    public byte[] image(KernelSource source, KernelTarget target, List<String> options) {
        Path file = directory.resolve(key(source, target, options) + SUFFIX);
        byte[] cached = read(file);
        if (cached != null) {
            return cached;
        }
        byte[] image = nvrtc.compile(source, target, options);
        write(file, image);
        return image;
    }

    private String key(KernelSource source, KernelTarget target, List<String> options) {
        MessageDigest digest = sha256();
        for (String part :
                List.of(
                        nvrtc.version(),
                        target.architecture(),
                        String.join("\0", options),
                        source.name(),
                        source.text())) {
            byte[] bytes = part.getBytes(StandardCharsets.UTF_8);
            digest.update(Integer.toString(bytes.length).getBytes(StandardCharsets.UTF_8));
            digest.update((byte) 0);
            digest.update(bytes);
        }
        return HexFormat.of().formatHex(digest.digest());
    }

    private static byte @Nullable [] read(Path file) {
        byte[] entry;
        try {
            if (!Files.exists(file)) {
                return null;
            }
            entry = Files.readAllBytes(file);
        } catch (IOException e) {
            LOGGER.log(Logger.Level.WARNING, "kernel not read file={0} reason={1}", file, e);
            return null;
        }
        if (entry.length > DIGEST_BYTES) {
            byte[] image = Arrays.copyOfRange(entry, DIGEST_BYTES, entry.length);
            if (MessageDigest.isEqual(sha256().digest(image), Arrays.copyOf(entry, DIGEST_BYTES))) {
                return image;
            }
        }
        LOGGER.log(Logger.Level.WARNING, "damaged kernel is compiled again file={0}", file);
        return null;
    }

    /** Under another name first, so that nobody sees half of it. */
    private void write(Path file, byte[] image) {
        try {
            Files.createDirectories(directory);
            Path part = Files.createTempFile(directory, "", ".part");
            try {
                byte[] entry = Arrays.copyOf(sha256().digest(image), DIGEST_BYTES + image.length);
                System.arraycopy(image, 0, entry, DIGEST_BYTES, image.length);
                Files.write(part, entry);
                Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
            } finally {
                Files.deleteIfExists(part);
            }
        } catch (IOException e) {
            LOGGER.log(Logger.Level.WARNING, "kernel not kept file={0} reason={1}", file, e);
        }
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every Java platform has SHA-256", e);
        }
    }
}
