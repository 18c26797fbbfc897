package dev.dormouse.cli.doctor;

import java.util.Optional;

/**
 * One line of the doctor's report.
 *
 * @param topic what was looked at, one or two words
 * @param text what was found
 * @param remedy what to do about it; empty exactly when the level is {@link Level#OK}
 */
record Finding(Level level, String topic, String text, Optional<String> remedy) {
    enum Level {
        /** Nothing to do. */
        OK("ok"),
        /** Dormouse runs, but slower or with less than it could. */
        WARN("warn"),
        /** Dormouse does not run. */
        FAIL("FAIL");

        private final String label;

        Level(String label) {
            this.label = label;
        }
    }

    static Finding ok(String topic, String text) {
        return new Finding(Level.OK, topic, text, Optional.empty());
    }

    static Finding warn(String topic, String text, String remedy) {
        return new Finding(Level.WARN, topic, text, Optional.of(remedy));
    }

    static Finding fail(String topic, String text, String remedy) {
        return new Finding(Level.FAIL, topic, text, Optional.of(remedy));
    }

    /** The finding as printed: one line, and a second one with the remedy. */
    String format() {
        String line = "%-5s %-14s %s".formatted(level.label, topic, text);
        return remedy.map(cure -> line + System.lineSeparator() + " ".repeat(21) + "-> " + cure)
                .orElse(line);
    }
}
