package dev.dormouse.router;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Seeded;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SseTailTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "''|true|false",
                "data: 1~~|true|false",
                "data: 1~|false|false",
                "data: 1|false|false",
                "data: [DONE]~~|true|true",
                "data:[DONE]~~|true|true",
                "data: [DONE]^~^~|true|true",
                "data: [DONE]~|false|false",
                "data: a~~data: [DONE]~~|true|true",
                "data: [DONE]~~data: b~~|true|false",
                "x [DONE]~~|true|false"
            })
    void tellsWhereAStreamStands(String stream, boolean betweenEvents, boolean done) {
        String text = stream.replace('~', '\n').replace('^', '\r');
        SseTail tail = new SseTail();
        add(tail, text);

        assertThat(tail.betweenEvents()).isEqualTo(betweenEvents);
        assertThat(tail.done()).isEqualTo(done);
    }

    @Test
    void cutsBetweenPiecesDoNotMatter() {
        Seeded.forAll(
                200,
                random -> {
                    String text =
                            "data: "
                                    + "y".repeat(random.nextInt(80))
                                    + (random.nextBoolean() ? "\n\n" : "")
                                    + (random.nextBoolean() ? "data: [DONE]\n\n" : "");
                    SseTail tail = new SseTail();
                    int at = 0;
                    while (at < text.length()) {
                        int end = Math.min(text.length(), at + 1 + random.nextInt(50));
                        add(tail, text.substring(at, end));
                        at = end;
                    }

                    assertThat(tail.betweenEvents()).isEqualTo(text.endsWith("\n\n"));
                    assertThat(tail.done()).isEqualTo(text.endsWith("data: [DONE]\n\n"));
                });
    }

    private static void add(SseTail tail, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
        // What lies behind the count must not matter.
        byte[] buffer = Arrays.copyOf(bytes, bytes.length + 3);
        tail.add(buffer, bytes.length);
    }
}
