package dev.dormouse.nixl;

import dev.dormouse.nixl.AgentMetadata.Opaque;
import dev.dormouse.nixl.AgentMetadata.SectionKey;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * Reads the framing of agent metadata, so that a malformed blob is refused before NIXL, which
 * trusts much of it: it indexes an array by the memory type, for one.
 *
 * <p>Source: {@code nixlSerDes} ({@code src/utils/serdes/serdes.cpp}), {@code
 * nixlAgentData::getLocalMD}, {@code nixlLocalSection::serialize} and {@code
 * nixlDescList::serialize} of NIXL 1.4 to 1.5. A field is its tag, a length of 8 bytes in the
 * machine's order, the bytes, and a bar. Bytes after the last field are ignored, as NIXL does.
 */
final class MetadataReader {
    private static final byte[] MAGIC = ascii("nixlSerDes|");
    private static final byte BAR = '|';
    private static final int DESCRIPTOR_BYTES = 24;

    private final String localAgent;
    private final byte[] bytes;
    private final ByteBuffer buffer;
    private final Map<String, Opaque> connections = new HashMap<>();
    private final Map<SectionKey, Opaque> sections = new HashMap<>();
    private int offset;
    private String peer = "unknown";

    private MetadataReader(String localAgent, byte[] bytes) {
        this.localAgent = localAgent;
        this.bytes = bytes;
        this.buffer = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
    }

    /**
     * Reads a whole blob.
     *
     * @throws MetadataException when it is not what NIXL writes
     */
    static AgentMetadata read(String localAgent, byte[] bytes, int maxBytes) {
        MetadataReader reader = new MetadataReader(localAgent, bytes);
        if (bytes.length > maxBytes) {
            throw reader.refused(bytes.length + " bytes are more than " + maxBytes);
        }
        return reader.readAll();
    }

    private AgentMetadata readAll() {
        if (!Arrays.equals(Arrays.copyOf(bytes, Math.min(bytes.length, MAGIC.length)), MAGIC)) {
            throw refused("it does not start with 'nixlSerDes|'");
        }
        offset = MAGIC.length;
        peer = agentName(field("Agent"));
        readConnections();
        if (!"MemSection".equals(text(field("")))) {
            throw refused("no memory sections follow");
        }
        long lists = number("nixlSecElms");
        for (long i = 0; i < lists; i++) {
            readDescriptors();
        }
        return new AgentMetadata(peer, connections, sections);
    }

    private void readConnections() {
        long count = number("Conns");
        for (long i = 0; i < count; i++) {
            String backend = nonEmptyText(field("t"));
            byte[] connection = field("c");
            if (connection.length == 0) {
                throw refused("connection of backend " + backend + " is empty");
            }
            if (connections.put(backend, new Opaque(connection)) != null) {
                throw refused("backend " + backend + " has two connections");
            }
        }
    }

    private void readDescriptors() {
        String backend = nonEmptyText(field("bknd"));
        if (!"nixlSDList".equals(text(field("nixlDList")))) {
            throw refused("a section list has another type");
        }
        byte[] typeBytes = field("t");
        if (typeBytes.length != Integer.BYTES) {
            throw refused("a memory type has " + typeBytes.length + " bytes");
        }
        int typeCode = ByteBuffer.wrap(typeBytes).order(ByteOrder.nativeOrder()).getInt();
        if (!MemoryType.isCode(typeCode)) {
            throw refused("memory type " + typeCode + " is unknown");
        }
        MemoryType type = MemoryType.ofCode(typeCode);
        long count = number("n");
        if (count <= 0) {
            throw refused("a section list has " + count + " entries");
        }
        for (long i = 0; i < count; i++) {
            readDescriptor(backend, type, field(""));
        }
    }

    private void readDescriptor(String backend, MemoryType type, byte[] entry) {
        if (entry.length <= DESCRIPTOR_BYTES) {
            throw refused("a section has " + entry.length + " bytes, so no remote key");
        }
        ByteBuffer descriptor = ByteBuffer.wrap(entry).order(ByteOrder.nativeOrder());
        long address = descriptor.getLong();
        long length = descriptor.getLong();
        long deviceId = descriptor.getLong();
        if (type.isAddressable() && (address < 0 || length <= 0 || address + length < 0)) {
            throw refused("section 0x%x+%d leaves the address space".formatted(address, length));
        }
        SectionKey key = new SectionKey(backend, type, address, length, deviceId);
        Opaque remoteKey = new Opaque(Arrays.copyOfRange(entry, DESCRIPTOR_BYTES, entry.length));
        Opaque previous = sections.put(key, remoteKey);
        if (previous != null && !previous.equals(remoteKey)) {
            throw refused("section " + key + " has two keys");
        }
    }

    /** The bytes of the next field, which must carry {@code tag}. */
    private byte[] field(String tag) {
        byte[] expected = ascii(tag);
        int header = expected.length + Long.BYTES;
        if (bytes.length - offset < header
                || !Arrays.equals(
                        bytes, offset, offset + expected.length, expected, 0, expected.length)) {
            throw refused("field '%s' is missing at byte %d".formatted(tag, offset));
        }
        long length = buffer.getLong(offset + expected.length);
        int start = offset + header;
        if (length < 0 || length >= bytes.length - start) {
            throw refused(
                    "field '%s' at byte %d claims %d bytes of %d left"
                            .formatted(tag, offset, length, bytes.length - start));
        }
        int end = start + (int) length;
        if (bytes[end] != BAR) {
            throw refused("field '%s' at byte %d has no end mark".formatted(tag, offset));
        }
        offset = end + 1;
        return Arrays.copyOfRange(bytes, start, end);
    }

    private long number(String tag) {
        byte[] value = field(tag);
        if (value.length != Long.BYTES) {
            throw refused("field '%s' has %d bytes, not 8".formatted(tag, value.length));
        }
        long number = ByteBuffer.wrap(value).order(ByteOrder.nativeOrder()).getLong();
        if (number < 0) {
            throw refused("field '%s' is %s".formatted(tag, Long.toUnsignedString(number)));
        }
        return number;
    }

    private String agentName(byte[] name) {
        String text = nonEmptyText(name);
        if (name.length > NixlAgentConfig.MAX_NAME_BYTES
                || text.chars().anyMatch(Character::isISOControl)) {
            throw refused(
                    "an agent name has %d bytes or a control character".formatted(name.length));
        }
        return text;
    }

    private String nonEmptyText(byte[] value) {
        String text = text(value);
        if (text.isEmpty()) {
            throw refused("a name before byte " + offset + " is empty");
        }
        return text;
    }

    private String text(byte[] value) {
        try {
            CharBuffer decoded = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(value));
            return decoded.toString();
        } catch (CharacterCodingException e) {
            throw refused("a name before byte " + offset + " is not UTF-8");
        }
    }

    private MetadataException refused(String reason) {
        return new MetadataException(localAgent, peer, reason);
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
