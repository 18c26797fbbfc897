package dev.dormouse.transport.local;

import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/** A part of an answer of an owner who may say anything. */
final class RawGrant {
    /** Kind of memory: files. */
    static final int FILES = 0;

    /** Kind of memory: pieces of a device's. */
    static final int PIECES = 1;

    private final Token incarnation;
    private final String agentName;
    private final List<long[]> segments = new ArrayList<>();
    private int last = 1;
    private int kind = PIECES;
    private UUID device;
    private int writable;
    private long[] lengths = {};
    private int toldCount = -1;
    private int toldSegments = -1;

    RawGrant(LocalMetadata metadata, UUID device) {
        incarnation = metadata.incarnation();
        agentName = metadata.agentName();
        this.device = device;
    }

    RawGrant notLast() {
        last = 0;
        return this;
    }

    RawGrant kind(int value) {
        kind = value;
        return this;
    }

    RawGrant device(UUID value) {
        device = value;
        return this;
    }

    RawGrant writable(int value) {
        writable = value;
        return this;
    }

    /** Of the pieces. */
    RawGrant lengths(long... values) {
        lengths = values;
        return this;
    }

    /** How many files or pieces there are said to be, if not as many as lengths. */
    RawGrant toldCount(int value) {
        toldCount = value;
        return this;
    }

    RawGrant segment(long address, long lengthBytes, int file, long offsetBytes) {
        segments.add(new long[] {address, lengthBytes, file, offsetBytes});
        return this;
    }

    /** How many ranges there are said to be, if not as many as there are. */
    RawGrant toldSegments(int value) {
        toldSegments = value;
        return this;
    }

    byte[] encode() {
        WireWriter writer =
                new WireWriter()
                        .one(Frame.GRANT)
                        .token(incarnation)
                        .text(agentName)
                        .one(last)
                        .one(kind);
        if (kind == PIECES) {
            writer.number(device.getMostSignificantBits())
                    .number(device.getLeastSignificantBits())
                    .one(writable);
        }
        writer.count(toldCount < 0 ? lengths.length : toldCount);
        if (kind == PIECES) {
            for (long length : lengths) {
                writer.number(length);
            }
        }
        writer.count(toldSegments < 0 ? segments.size() : toldSegments);
        for (long[] segment : segments) {
            writer.number(segment[0]).number(segment[1]).count((int) segment[2]).number(segment[3]);
        }
        return writer.toBytes();
    }
}
