package dev.dormouse.cli.doctor;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Optional;

/** The default model: there, a GGUF file as it was fetched, or a folder. */
final class ModelCheck {
    private static final String TOPIC = "model";

    private ModelCheck() {}

    static Finding finding(Machine machine) {
        Optional<String> named = machine.variable("DORMOUSE_MODEL");
        if (named.isEmpty()) {
            return Finding.fail(
                    TOPIC,
                    "not found",
                    "run ./dormouse doctor again with network, or set DORMOUSE_MODEL to a GGUF file or a model's folder");
        }
        Path file = machine.at(named.get());
        if (!Files.isReadable(file)) {
            return Finding.fail(
                    TOPIC, "cannot read " + file, "correct DORMOUSE_MODEL, or unset it");
        }
        if (Files.isDirectory(file)) {
            return folder(file);
        }
        // The launcher writes this file when it unpacks the model from a verified wheel.
        Optional<String> expected =
                machine.text(named.get() + ".sha256")
                        .map(text -> text.strip().replaceFirst("\\s.*", ""));
        try {
            return compare(file, expected);
        } catch (IOException e) {
            return Finding.fail(
                    TOPIC, "cannot read " + file + ": " + e.getMessage(), refetch(file));
        }
    }

    private static Finding folder(Path folder) {
        return Files.isReadable(folder.resolve("config.json"))
                ? Finding.ok(TOPIC, folder + ", a folder, no SHA-256 to compare with")
                : Finding.fail(
                        TOPIC,
                        folder + " has no config.json",
                        "correct DORMOUSE_MODEL, or unset it");
    }

    private static Finding compare(Path file, Optional<String> expected) throws IOException {
        String text = file + ", " + Bytes.text(Files.size(file));
        MessageDigest digest = sha256();
        try (InputStream in = new DigestInputStream(Files.newInputStream(file), digest)) {
            if (!new String(in.readNBytes(4), StandardCharsets.ISO_8859_1).equals("GGUF")) {
                return Finding.fail(TOPIC, text + ", not a GGUF file", refetch(file));
            }
            in.transferTo(OutputStream.nullOutputStream());
        }
        if (expected.isEmpty()) {
            return Finding.ok(TOPIC, text + ", no SHA-256 to compare with");
        }
        String actual = HexFormat.of().formatHex(digest.digest());
        return actual.equals(expected.get())
                ? Finding.ok(TOPIC, text + ", SHA-256 as fetched")
                : Finding.fail(
                        TOPIC,
                        text + ", SHA-256 " + actual + ", fetched with " + expected.get(),
                        refetch(file));
    }

    private static String refetch(Path file) {
        return "if ./dormouse fetched it, remove "
                + file.toAbsolutePath().getParent()
                + " and run it again; else correct DORMOUSE_MODEL";
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }
}
