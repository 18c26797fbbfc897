package dev.dormouse.cli.fleet;

import java.nio.file.Path;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * What a fleet's engines are.
 *
 * @param model what they serve; null for the default
 * @param kvCacheMiB KV cache of each
 * @param prefillRanks tensor parallel size of the prefill engine
 * @param decodeRanks tensor parallel size of the decode engine
 * @param transport which way KV takes from one to the other
 * @param revokes whether they take back what others have of their memory before it sleeps; false
 *     shows what happens otherwise
 */
public record FleetOptions(
        @Nullable Path model,
        int kvCacheMiB,
        int prefillRanks,
        int decodeRanks,
        Transport transport,
        boolean revokes) {
    /** Ways of KV; the names are those of {@code dormouse serve --kv-transport}. */
    public enum Transport {
        /** The nearest. */
        AUTO,
        /** NIXL. */
        NIXL,
        /** Mapped memory. */
        LOCAL;

        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** Engines of one rank each. */
    public static FleetOptions of(@Nullable Path model, int kvCacheMiB, Transport transport) {
        return new FleetOptions(model, kvCacheMiB, 1, 1, transport, true);
    }
}
