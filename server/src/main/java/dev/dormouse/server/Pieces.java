package dev.dormouse.server;

import java.util.List;

/** Makes parts of one choice's text, which comes in pieces. */
interface Pieces {
    /** The parts that a piece completes; what may be the beginning of something is held back. */
    List<Part> push(String text);

    /** What was held back, at the end of the text. */
    List<Part> finish();

    /** Text that is only text. */
    static Pieces plain() {
        return new Pieces() {
            @Override
            public List<Part> push(String text) {
                return text.isEmpty() ? List.of() : List.of(new Part.Text(text));
            }

            @Override
            public List<Part> finish() {
                return List.of();
            }
        };
    }
}
