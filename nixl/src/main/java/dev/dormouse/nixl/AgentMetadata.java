package dev.dormouse.nixl;

import java.util.Arrays;
import java.util.Map;

/**
 * What a blob of agent metadata says, as far as NIXL's framing tells it. Keys and connection
 * information are opaque.
 *
 * @param agent the peer's name
 * @param connections by backend
 * @param sections registered memory and its remote key
 */
record AgentMetadata(
        String agent, Map<String, Opaque> connections, Map<SectionKey, Opaque> sections) {

    /** What NIXL tells sections apart by. */
    record SectionKey(
            String backend, MemoryType type, long address, long lengthBytes, long deviceId) {
        @Override
        public String toString() {
            return "%s 0x%x+%d/device %d of %s"
                    .formatted(type, address, lengthBytes, deviceId, backend);
        }
    }

    /** Bytes compared by content. */
    static final class Opaque {
        private final byte[] bytes;

        Opaque(byte[] bytes) {
            this.bytes = bytes;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Opaque that && Arrays.equals(bytes, that.bytes);
        }

        @Override
        public int hashCode() {
            return Arrays.hashCode(bytes);
        }
    }
}
