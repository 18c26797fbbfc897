package dev.dormouse.nixl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.nixl.AgentMetadata.SectionKey;
import dev.dormouse.testkit.Natives;
import dev.dormouse.testkit.Seeded;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class MetadataReaderTest {
    private static final int LIMIT = 1 << 20;
    private static final long HUGE = -1;

    @Test
    void whatTheLibraryWritesIsUnderstood() {
        Natives.nixlDirectory();
        try (Arena arena = Arena.ofShared();
                NixlAgent agent = NixlAgent.create(NixlAgentConfig.builder("author").build())) {
            agent.createBackend("UCX", Map.of());
            assertThat(read(agent.localMetadata()).sections()).isEmpty();
            MemorySegment one = arena.allocate(8192, 4096);
            MemorySegment two = arena.allocate(100);
            Registration first =
                    agent.register(
                            MemoryType.DRAM,
                            List.of(MemoryRange.host(one), new MemoryRange(two, 3)));

            AgentMetadata full = read(agent.localMetadata());
            AgentMetadata partial = read(agent.partialMetadata(List.of(first)));

            SectionKey[] keys = {
                new SectionKey("UCX", MemoryType.DRAM, one.address(), 8192, 0),
                new SectionKey("UCX", MemoryType.DRAM, two.address(), 100, 3)
            };
            assertThat(full.agent()).isEqualTo("author");
            assertThat(full.connections()).containsOnlyKeys("UCX");
            assertThat(full.sections()).containsOnlyKeys(keys);
            assertThat(partial.agent()).isEqualTo("author");
            assertThat(partial.connections()).isEmpty();
            assertThat(partial.sections()).isEqualTo(full.sections());
        }
    }

    @Test
    void everyTruncationIsRefused() {
        byte[] whole = valid().bytes();
        assertThat(read(whole).sections()).hasSize(2);
        for (int length = 0; length < whole.length; length++) {
            byte[] cut = Arrays.copyOf(whole, length);
            assertThatThrownBy(() -> read(cut)).isInstanceOf(MetadataException.class);
        }
        assertThat(read(Arrays.copyOf(whole, whole.length + 9)).sections()).hasSize(2);
    }

    @Test
    void changedBytesAreRefusedOrRead() {
        byte[] whole = valid().bytes();
        Seeded.forAll(
                3000,
                random -> {
                    byte[] changed = whole.clone();
                    for (int i = 1 + random.nextInt(4); i > 0; i--) {
                        changed[random.nextInt(changed.length)] = (byte) random.nextInt(256);
                    }
                    try {
                        AgentMetadata metadata = read(changed);
                        assertThat(metadata.agent()).isNotEmpty();
                    } catch (MetadataException e) {
                        assertThat(e.agent()).isEqualTo("local");
                    }
                });
    }

    @Test
    void hostileValuesAreNamed() {
        assertRefused(new byte[LIMIT + 1], "1048577 bytes are more than 1048576");
        assertRefused("nixlSerDes".getBytes(StandardCharsets.UTF_8), "does not start with");
        assertRefused(new Blob().text("Name", "x"), "field 'Agent' is missing at byte 11");
        assertRefused(new Blob().text("Agent", ""), "is empty");
        assertRefused(new Blob().text("Agent", "a\0b"), "control character");
        assertRefused(new Blob().text("Agent", "a\nb"), "control character");
        assertRefused(new Blob().text("Agent", "x".repeat(256)), "256 bytes");
        assertRefused(new Blob().field("Agent", new byte[] {(byte) 0xff}), "not UTF-8");
        assertRefused(new Blob().raw("Agent", Long.MAX_VALUE, "x"), "claims 9223372036854775807");
        assertRefused(new Blob().raw("Agent", HUGE, "x"), "claims -1");
        assertRefused(new Blob().raw("Agent", 1, "xy"), "has no end mark");
        assertRefused(agent().number("Conns", HUGE), "field 'Conns' is 18446744073709551615");
        assertRefused(agent().field("Conns", new byte[4]), "has 4 bytes, not 8");
        assertRefused(agent().number("Conns", 1).text("t", "UCX").text("c", ""), "is empty");
        assertRefused(
                agent().number("Conns", 2)
                        .text("t", "UCX")
                        .text("c", "1")
                        .text("t", "UCX")
                        .text("c", "2"),
                "backend UCX has two connections");
        assertRefused(agent().number("Conns", 0).text("", "Other"), "no memory sections follow");
        assertRefused(list(9, 1), "memory type 9 is unknown");
        assertRefused(list(-1, 1), "memory type -1 is unknown");
        assertRefused(list(0, 0), "a section list has 0 entries");
        assertRefused(list(0, HUGE), "field 'n' is 18446744073709551615");
        assertRefused(list(0, 1).field("", new byte[24]), "so no remote key");
        assertRefused(list(0, 1).section(-4096, 1, 0, "k"), "leaves the address space");
        assertRefused(list(0, 1).section(4096, Long.MAX_VALUE, 0, "k"), "leaves the address");
        assertRefused(list(0, 1).section(4096, 0, 0, "k"), "leaves the address space");
        assertRefused(
                list(0, 2).section(4096, 1, 0, "k").section(4096, 1, 0, "other"), "has two keys");
        assertThat(
                        read(list(0, 2).section(4096, 1, 0, "k").section(4096, 1, 0, "k").bytes())
                                .sections())
                .hasSize(1);
    }

    private static AgentMetadata read(byte[] bytes) {
        return MetadataReader.read("local", bytes, LIMIT);
    }

    private static void assertRefused(Blob blob, String why) {
        assertRefused(blob.bytes(), why);
    }

    private static void assertRefused(byte[] bytes, String why) {
        assertThatThrownBy(() -> read(bytes))
                .isInstanceOf(MetadataException.class)
                .hasMessageStartingWith("load remote metadata failed: agent=local")
                .hasMessageContaining(why);
    }

    private static Blob agent() {
        return new Blob().text("Agent", "peer");
    }

    private static Blob list(int type, long count) {
        return agent().number("Conns", 1)
                .text("t", "UCX")
                .text("c", "address")
                .text("", "MemSection")
                .number("nixlSecElms", 1)
                .text("bknd", "UCX")
                .text("nixlDList", "nixlSDList")
                .field("t", Blob.order(4).putInt(type).array())
                .number("n", count);
    }

    private static Blob valid() {
        return list(0, 2).section(4096, 100, 0, "key one").section(8192, 100, 1, "key two");
    }

    /** Writes as NIXL does. */
    private static final class Blob {
        private final ByteArrayOutputStream out = new ByteArrayOutputStream();

        Blob() {
            out.writeBytes("nixlSerDes|".getBytes(StandardCharsets.UTF_8));
        }

        Blob text(String tag, String value) {
            return field(tag, value.getBytes(StandardCharsets.UTF_8));
        }

        Blob number(String tag, long value) {
            return field(tag, order(8).putLong(value).array());
        }

        Blob section(long address, long length, long deviceId, String key) {
            byte[] keyBytes = key.getBytes(StandardCharsets.UTF_8);
            return field(
                    "",
                    order(24 + keyBytes.length)
                            .putLong(address)
                            .putLong(length)
                            .putLong(deviceId)
                            .put(keyBytes)
                            .array());
        }

        Blob field(String tag, byte[] value) {
            return header(tag, value.length, value);
        }

        Blob raw(String tag, long claimed, String value) {
            return header(tag, claimed, value.getBytes(StandardCharsets.UTF_8));
        }

        byte[] bytes() {
            return out.toByteArray();
        }

        static ByteBuffer order(int bytes) {
            return ByteBuffer.allocate(bytes).order(ByteOrder.nativeOrder());
        }

        private Blob header(String tag, long claimed, byte[] value) {
            out.writeBytes(tag.getBytes(StandardCharsets.UTF_8));
            out.writeBytes(order(8).putLong(claimed).array());
            out.writeBytes(value);
            out.write('|');
            return this;
        }
    }
}
