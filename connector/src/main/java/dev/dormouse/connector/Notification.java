package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A message between the engine that holds blocks and the one that wants them. */
sealed interface Notification
        permits Notification.Completion,
                Notification.Renewal,
                Notification.Malformed,
                PushRegistration,
                PushEnd {
    /** More than any message of a sane peer. */
    int MAX_BYTES = 1 << 20;

    /** Longer request ids are nobody's. */
    int MAX_ID_CHARS = 512;

    /** Ids of one heartbeat message. */
    int MAX_RENEWAL_BYTES = 32 << 10;

    /** What starts the completion of a reader that has claimed what it read. */
    String CLAIMED_PREFIX = "DORMOUSE_CLAIMED:";

    /** {@code HB:}, as it starts a heartbeat. */
    String HEARTBEAT_PREFIX = "HB:";

    /**
     * The blocks of a request were read, or are not needed: {@code <request id>:<consumers>}. A
     * holder that pushes tells so that it has written them.
     *
     * @param requestId the request, by the id of whoever gets the message
     * @param consumers how many readers send this message in all; of a push, the ranks of the
     *     holder
     * @param claimed whether its sender had claimed the request: only one engine can have. Told to
     *     holders of our own kind alone, in front of vLLM's message
     */
    record Completion(String requestId, int consumers, boolean claimed) implements Notification {
        /** One of an engine that has claimed nothing, such as vLLM's. */
        Completion(String requestId, int consumers) {
            this(requestId, consumers, false);
        }

        byte[] encode() {
            return ((claimed ? CLAIMED_PREFIX : "") + requestId + ":" + consumers).getBytes(UTF_8);
        }
    }

    /** The requests still wait to be read: {@code HB:<id>,<id>,…}. */
    record Renewal(List<String> requestIds) implements Notification {
        /** A heartbeat's renewals, in messages that no peer's limit refuses. */
        static List<Renewal> of(Heartbeat heartbeat) {
            List<Renewal> renewals = new ArrayList<>();
            List<String> ids = new ArrayList<>();
            int bytes = 0;
            for (String id : heartbeat.remoteRequestIds()) {
                int more = id.getBytes(UTF_8).length + 1;
                if (!ids.isEmpty() && bytes + more > MAX_RENEWAL_BYTES) {
                    renewals.add(new Renewal(List.copyOf(ids)));
                    ids.clear();
                    bytes = 0;
                }
                ids.add(id);
                bytes += more;
            }
            if (!ids.isEmpty()) {
                renewals.add(new Renewal(List.copyOf(ids)));
            }
            return renewals;
        }

        byte[] encode() {
            return (HEARTBEAT_PREFIX + String.join(",", requestIds)).getBytes(UTF_8);
        }
    }

    /** Bytes that mean nothing. */
    record Malformed(String problem) implements Notification {}

    /** Reads a peer's bytes; never throws. */
    static Notification decode(byte[] bytes) {
        if (bytes.length > MAX_BYTES) {
            return new Malformed(bytes.length + " bytes, limit " + MAX_BYTES);
        }
        try {
            if (startsWith(bytes, PushRegistration.PREFIX)) {
                return PushRegistration.decode(after(PushRegistration.PREFIX, bytes));
            } else if (startsWith(bytes, PushEnd.PREFIX)) {
                return PushEnd.decode(after(PushEnd.PREFIX, bytes));
            }
        } catch (WireException e) {
            return new Malformed(String.valueOf(e.getMessage()));
        }
        String text;
        try {
            text = UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (CharacterCodingException e) {
            return new Malformed("not UTF-8");
        }
        if (text.startsWith(HEARTBEAT_PREFIX)) {
            return new Renewal(
                    Arrays.stream(text.substring(HEARTBEAT_PREFIX.length()).split(","))
                            .filter(id -> !id.isEmpty())
                            .toList());
        }
        boolean claimed = text.startsWith(CLAIMED_PREFIX);
        return completion(claimed ? text.substring(CLAIMED_PREFIX.length()) : text, claimed);
    }

    private static Notification completion(String text, boolean claimed) {
        int colon = text.lastIndexOf(':');
        String count = text.substring(colon + 1);
        if (colon < 1
                || colon > MAX_ID_CHARS
                || !count.matches("[0-9]{1,6}")
                || Integer.parseInt(count) < 1) {
            return new Malformed("neither a heartbeat nor <request id>:<consumers>");
        }
        return new Completion(text.substring(0, colon), Integer.parseInt(count), claimed);
    }

    /** A message of a prefix and msgpack. */
    static byte[] prefixed(String prefix, WireWriter body) {
        byte[] start = prefix.getBytes(UTF_8);
        byte[] rest = body.bytes();
        byte[] bytes = Arrays.copyOf(start, start.length + rest.length);
        System.arraycopy(rest, 0, bytes, start.length, rest.length);
        return bytes;
    }

    private static boolean startsWith(byte[] bytes, String prefix) {
        byte[] start = prefix.getBytes(UTF_8);
        return bytes.length >= start.length
                && Arrays.equals(bytes, 0, start.length, start, 0, start.length);
    }

    private static byte[] after(String prefix, byte[] bytes) {
        return Arrays.copyOfRange(bytes, prefix.getBytes(UTF_8).length, bytes.length);
    }
}
