package dev.dormouse.connector;

/** Makes text of unknown origin fit for messages and logs: short, on one line, printable. */
final class Excerpt {
    private static final int MAX_CHARS = 120;

    private Excerpt() {}

    static String of(String text) {
        String cut = text.length() > MAX_CHARS ? text.substring(0, MAX_CHARS) + "…" : text;
        return "'" + cut.replaceAll("\\p{Cntrl}", "?") + "'";
    }
}
