package dev.dormouse.transport.local;

import dev.dormouse.foreign.SocketMessage;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/**
 * What goes over a connection. The one that loads (the reader) sends {@link Hello}; the one that is
 * loaded (the owner) answers with some {@link Grant}, with which the descriptors go, or {@link
 * Refusal} and the end. From then on the reader sends {@link Message} and, once it has unmapped
 * everything, {@link Released}; the owner may send one {@link Revoke}. A connection that stays open
 * after that stands by: the owner sends {@link Offer} when it has memory to give, and the reader
 * may send {@link Hello} again, asked or not.
 */
sealed interface Frame {
    /** What a frame may have. */
    int MAX_BYTES = 1 << 16;

    /** Descriptors that go with one {@link Grant}. */
    int MAX_PART_DESCRIPTORS = SocketMessage.MAX_DESCRIPTORS;

    /** Descriptors that go with all parts of an answer. */
    int MAX_DESCRIPTORS = 512;

    /** Segments of all parts of an answer. */
    int MAX_SEGMENTS = 1024;

    /** Of a message, the part that one frame carries. */
    int PART_BYTES = 1 << 15;

    /** Of this protocol. */
    int VERSION = 1;

    /** What the text of a {@link Refusal} may have. */
    int MAX_REASON_BYTES = 1024;

    /** First byte of a {@link Hello}. */
    int HELLO = 1;

    /** First byte of a {@link Grant}, and so on. */
    int GRANT = 2;

    /** See {@link Refusal}. */
    int REFUSAL = 3;

    /** See {@link Revoke}. */
    int REVOKE = 4;

    /** See {@link Released}. */
    int RELEASED = 5;

    /** See {@link Message}. */
    int MESSAGE = 6;

    /** See {@link Offer}. */
    int OFFER = 7;

    /** Asks to be given the memory of registrations. */
    record Hello(Token incarnation, String agentName, List<Token> registrations) implements Frame {}

    /**
     * A part of the memory.
     *
     * @param last whether it is all there with it
     * @param memory the descriptors that come along, at least one in a part that is not the last
     * @param segments in any of the descriptors of all parts
     */
    record Grant(
            Token incarnation,
            String agentName,
            boolean last,
            SharedMemory memory,
            List<SharedSegment> segments)
            implements Frame {
        private static final int FILES = 0;
        private static final int PIECES = 1;

        /** All of the memory as parts, in order. */
        static List<Grant> parts(
                Token incarnation,
                String agentName,
                SharedMemory memory,
                List<SharedSegment> segments) {
            List<Grant> parts = new ArrayList<>();
            int from = 0;
            while (memory.count() - from > MAX_PART_DESCRIPTORS) {
                SharedMemory part = memory.part(from, from + MAX_PART_DESCRIPTORS);
                parts.add(new Grant(incarnation, agentName, false, part, List.of()));
                from += MAX_PART_DESCRIPTORS;
            }
            SharedMemory rest = memory.part(from, memory.count());
            parts.add(new Grant(incarnation, agentName, true, rest, segments));
            return parts;
        }

        private void write(WireWriter writer) {
            writer.token(incarnation).text(agentName).one(last ? 1 : 0);
            switch (memory) {
                case SharedMemory.HostFiles(int count) -> writer.one(FILES).count(count);
                case SharedMemory.DevicePieces(
                                UUID device,
                                boolean writable,
                                List<Long> lengthsBytes) -> {
                    writer.one(PIECES)
                            .number(device.getMostSignificantBits())
                            .number(device.getLeastSignificantBits())
                            .one(writable ? 1 : 0)
                            .count(lengthsBytes.size());
                    lengthsBytes.forEach(writer::number);
                }
            }
            writer.count(segments.size());
            for (SharedSegment segment : segments) {
                writer.number(segment.address())
                        .number(segment.lengthBytes())
                        .count(segment.file())
                        .number(segment.offsetBytes());
            }
        }

        private static Grant read(WireReader reader) {
            Token incarnation = reader.token();
            String agentName = reader.text(LocalTransportOptions.MAX_NAME_BYTES);
            boolean last = reader.one() != 0;
            try {
                SharedMemory memory = memory(reader);
                List<SharedSegment> segments = new ArrayList<>();
                for (int left = reader.count(MAX_SEGMENTS); left > 0; left--) {
                    segments.add(
                            new SharedSegment(
                                    reader.number(),
                                    reader.number(),
                                    reader.count(MAX_DESCRIPTORS - 1),
                                    reader.number()));
                }
                return new Grant(incarnation, agentName, last, memory, segments);
            } catch (IllegalArgumentException e) {
                throw reader.malformed(String.valueOf(e.getMessage()));
            }
        }

        private static SharedMemory memory(WireReader reader) {
            int kind = reader.one();
            return switch (kind) {
                case FILES -> new SharedMemory.HostFiles(reader.count(MAX_PART_DESCRIPTORS));
                case PIECES -> {
                    UUID device = new UUID(reader.number(), reader.number());
                    boolean writable = reader.one() != 0;
                    List<Long> lengths = new ArrayList<>();
                    for (int left = reader.count(MAX_PART_DESCRIPTORS); left > 0; left--) {
                        lengths.add(reader.number());
                    }
                    yield new SharedMemory.DevicePieces(device, writable, lengths);
                }
                default -> throw reader.malformed("memory of kind " + kind + " does not exist");
            };
        }
    }

    /** No memory is given. */
    record Refusal(String reason) implements Frame {}

    /** The memory is to be unmapped now. */
    record Revoke() implements Frame {}

    /** The memory is unmapped, and nothing will touch it again. */
    record Released() implements Frame {}

    /**
     * The memory of all registrations that there are now can be asked for. No descriptors go along.
     */
    record Offer(List<Token> registrations) implements Frame {}

    /**
     * A part of a message.
     *
     * @param last whether the message ends with it
     */
    @SuppressWarnings("ArrayRecordComponent") // handed over once, never compared
    record Message(boolean last, byte[] part) implements Frame {}

    /** The frame's bytes. */
    default byte[] encode() {
        WireWriter writer = new WireWriter();
        switch (this) {
            case Hello(Token incarnation, String agentName, List<Token> registrations) -> {
                writer.one(HELLO).one(VERSION).token(incarnation).text(agentName);
                writer.tokens(registrations);
            }
            case Grant grant -> grant.write(writer.one(GRANT));
            case Refusal(String reason) -> writer.one(REFUSAL).text(reason);
            case Revoke() -> writer.one(REVOKE);
            case Released() -> writer.one(RELEASED);
            case Offer(List<Token> registrations) -> writer.one(OFFER).tokens(registrations);
            case Message(boolean last, byte[] part) ->
                    writer.one(MESSAGE).one(last ? 1 : 0).raw(part, 0, part.length);
        }
        return writer.toBytes();
    }

    /**
     * Reads a frame.
     *
     * @throws TransportException if it is none
     */
    static Frame decode(byte[] bytes) {
        WireReader reader = new WireReader("frame", bytes);
        int type = reader.one();
        Frame frame =
                switch (type) {
                    case HELLO -> hello(reader);
                    case GRANT -> Grant.read(reader);
                    case REFUSAL -> new Refusal(reader.text(MAX_REASON_BYTES));
                    case REVOKE -> new Revoke();
                    case RELEASED -> new Released();
                    case OFFER -> new Offer(reader.tokens(LocalMetadata.MAX_REGISTRATIONS));
                    case MESSAGE -> new Message(reader.one() != 0, reader.rest());
                    default -> throw reader.malformed("type " + type + " does not exist");
                };
        reader.requireEnd();
        return frame;
    }

    /** A message as frames, at least one. */
    static List<byte[]> ofMessage(byte[] message) {
        List<byte[]> frames = new ArrayList<>();
        int at = 0;
        do {
            int length = Math.min(PART_BYTES, message.length - at);
            boolean last = at + length == message.length;
            frames.add(
                    new WireWriter()
                            .one(MESSAGE)
                            .one(last ? 1 : 0)
                            .raw(message, at, length)
                            .toBytes());
            at += length;
        } while (at < message.length);
        return frames;
    }

    private static Hello hello(WireReader reader) {
        int version = reader.one();
        if (version != VERSION) {
            throw reader.malformed("version %d, and not %d".formatted(version, VERSION));
        }
        Token incarnation = reader.token();
        String agentName = reader.text(LocalTransportOptions.MAX_NAME_BYTES);
        return new Hello(incarnation, agentName, reader.tokens(LocalMetadata.MAX_REGISTRATIONS));
    }
}
