package dev.dormouse.router;

import java.nio.charset.StandardCharsets;

/** Remembers the end of a server-sent event stream, to tell where it broke off. */
final class SseTail {
    private static final int KEPT_BYTES = 32;

    private final byte[] kept = new byte[KEPT_BYTES];
    private int length;

    /** Notes the next {@code count} bytes of the stream. */
    void add(byte[] bytes, int count) {
        int fresh = Math.min(count, KEPT_BYTES);
        int old = Math.min(length, KEPT_BYTES - fresh);
        System.arraycopy(kept, length - old, kept, 0, old);
        System.arraycopy(bytes, count - fresh, kept, old, fresh);
        length = old + fresh;
    }

    /** True if no event is half sent. */
    boolean betweenEvents() {
        String text = text();
        return text.isEmpty() || text.endsWith("\n\n") || text.endsWith("\r\n\r\n");
    }

    /** True if the last event is OpenAI's end marker. */
    boolean done() {
        String last = text().stripTrailing();
        return betweenEvents() && (last.endsWith("data: [DONE]") || last.endsWith("data:[DONE]"));
    }

    private String text() {
        return new String(kept, 0, length, StandardCharsets.ISO_8859_1);
    }
}
