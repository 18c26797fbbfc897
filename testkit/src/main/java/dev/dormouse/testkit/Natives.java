package dev.dormouse.testkit;

import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;

/**
 * Finds what only the set-up can bring: NIXL's libraries and the default model.
 *
 * <p>A test that needs one of them and does not find it is skipped with the reason, unless the
 * environment variable {@code DORMOUSE_REQUIRE_NATIVE} is {@code 1}: then it fails, so that a
 * complete run cannot be green by skipping.
 */
public final class Natives {
    private Natives() {}

    /** The folder that holds {@code libnixl_capi.so}, from {@code DORMOUSE_NIXL_DIR}. */
    public static Path nixlDirectory() {
        return required("DORMOUSE_NIXL_DIR");
    }

    /** The default model's GGUF file, from {@code DORMOUSE_MODEL}. */
    public static Path model() {
        return required("DORMOUSE_MODEL");
    }

    private static Path required(String variable) {
        @Nullable String value = System.getenv(variable);
        boolean found = value != null && Files.exists(Path.of(value));
        if (!found) {
            String reason =
                    variable
                            + " names nothing that exists ("
                            + value
                            + "); `./dormouse test` sets it";
            if ("1".equals(System.getenv("DORMOUSE_REQUIRE_NATIVE"))) {
                Assertions.fail(reason);
            }
            Assumptions.abort(reason);
        }
        return Path.of(java.util.Objects.requireNonNull(value));
    }
}
