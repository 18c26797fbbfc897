package dev.dormouse.cli.demo;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Real text of a few hundred tokens: a task and a passage each, no two alike. */
final class DemoPrompts {
    private static final String RESOURCE = "passages.txt";
    private static final List<String> TASKS =
            List.of(
                    "Continue the following passage in the same voice.\n\n",
                    "Read this, then write down what happens next.\n\n",
                    "Here is a page from a notebook. Add the sentences that are missing at its end.\n\n",
                    "A friend sent me this description. Go on from where it stops.\n\n");

    private DemoPrompts() {}

    /** How many distinct prompts there are. */
    static int available() {
        return TASKS.size() * passages().size();
    }

    /** The first {@code count} prompts; neighbours share no passage. */
    static List<String> first(int count) {
        List<String> passages = passages();
        List<String> prompts = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            prompts.add(TASKS.get(i / passages.size()) + passages.get(i % passages.size()));
        }
        return prompts;
    }

    private static List<String> passages() {
        try (InputStream stream = DemoPrompts.class.getResourceAsStream(RESOURCE)) {
            if (stream == null) {
                throw new IllegalStateException(
                        "resource " + RESOURCE + " is missing from the class path");
            }
            return List.of(
                    new String(stream.readAllBytes(), StandardCharsets.UTF_8)
                            .strip()
                            .split("\n\n"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
