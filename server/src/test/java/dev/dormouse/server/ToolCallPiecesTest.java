package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Seeded;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class ToolCallPiecesTest {
    private static final String CALL =
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"</x>\"]}}\n</tool_call>";
    private static final String F = "f{\"a\":[1,\"</x>\"]}";

    /** The parts, neighbouring texts joined. */
    private static List<String> parts(ToolCallPieces pieces, List<String> cut) {
        List<Part> parts = new ArrayList<>();
        cut.forEach(piece -> parts.addAll(pieces.push(piece)));
        parts.addAll(pieces.finish());
        List<String> said = new ArrayList<>();
        boolean text = false;
        for (Part part : parts) {
            switch (part) {
                case Part.Text(String words) -> {
                    if (text) {
                        said.set(said.size() - 1, said.getLast() + words);
                    } else {
                        said.add(words);
                    }
                    text = true;
                }
                case Part.Call(int index, String name, String arguments) -> {
                    said.add(index + name + arguments);
                    text = false;
                }
            }
        }
        return said;
    }

    private static List<String> whole(String text) {
        return parts(new ToolCallPieces(Integer.MAX_VALUE), List.of(text));
    }

    @Test
    void findsCallsBetweenText() {
        assertThat(whole("I look.\n" + CALL + "\n" + CALL + " done"))
                .containsExactly("I look.\n", "0" + F, "1" + F, "done");
        assertThat(whole("no call < tool_call>")).containsExactly("no call < tool_call>");
    }

    @Test
    void whatIsNoCallStaysText() {
        for (String text :
                List.of(
                        "<tool_call>{}</tool_call>",
                        "<tool_call>{\"name\":1,\"arguments\":{}}</tool_call>",
                        "<tool_call>not json</tool_call>x",
                        "<tool_call>{\"name\":\"f\",\"argum",
                        "<tool_c")) {
            assertThat(whole(text)).containsExactly(text);
        }
    }

    @Test
    void aCallThatOnlyLacksItsEndCounts() {
        assertThat(whole(CALL.replace("</tool_call>", ""))).containsExactly("0" + F);
    }

    @Test
    void onlySoManyCallsCount() {
        assertThat(parts(new ToolCallPieces(1), List.of(CALL + CALL))).containsExactly("0" + F);
    }

    @Test
    void howTheTextIsCutMakesNoDifference() {
        Seeded.forAll(
                300,
                random -> {
                    StringBuilder text = new StringBuilder();
                    for (int i = random.nextInt(5); i >= 0; i--) {
                        text.append(
                                List.of(CALL, "x", "<", "<tool_call>", "</tool_call>", " y", "{}")
                                        .get(random.nextInt(7)));
                    }
                    List<String> cut = new ArrayList<>();
                    for (int at = 0; at < text.length(); ) {
                        int end = Math.min(text.length(), at + random.nextInt(1, 9));
                        cut.add(text.substring(at, end));
                        at = end;
                    }
                    assertThat(parts(new ToolCallPieces(9), cut)).isEqualTo(whole(text.toString()));
                });
    }
}
