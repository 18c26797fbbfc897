package dev.dormouse.cli.bench.serve;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

final class AnswerStreamTest {
    private static final String TOKEN =
            "data: {\"choices\":[{\"text\":\"é\",\"finish_reason\":null}]}\n\n";
    private static final String END =
            "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n";
    private static final String USAGE =
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n";
    private static final String DONE = "data: [DONE]\n\n";

    private final AnswerStream stream = new AnswerStream(1_000);

    private void comes(String text, long nowNanos) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        stream.accept(bytes, bytes.length, nowNanos);
    }

    private static String failure(AnswerStream stream) {
        assertThat(stream.end()).isInstanceOf(Answer.Failed.class);
        return ((Answer.Failed) stream.end()).reason();
    }

    @Test
    void timesCountFromTheRequestAndOnlyTokensHaveThem() {
        comes(TOKEN, 1_050);
        comes(TOKEN, 1_080);
        comes(TOKEN, 1_120);
        comes(END, 1_500);
        comes(USAGE, 1_600);
        comes(DONE, 1_700);
        assertThat(stream.end()).isEqualTo(new Answer.Served(7, 2, 50, List.of(30L, 40L), 120));
    }

    @Test
    void itDoesNotMatterWhereTheNetworkCuts() {
        byte[] whole =
                (": a comment\r\nevent: x\r\n"
                                + TOKEN
                                + TOKEN.replace("\n", "\r\n")
                                + END
                                + USAGE
                                + DONE)
                        .replace("data: ", "data:")
                        .getBytes(StandardCharsets.UTF_8);
        for (int first = 0; first <= whole.length; first++) {
            AnswerStream cut = new AnswerStream(0);
            cut.accept(whole, first, 5);
            for (int i = first; i < whole.length; i += 3) {
                byte[] piece = Arrays.copyOfRange(whole, i, Math.min(i + 3, whole.length));
                cut.accept(piece, piece.length, 5);
            }
            assertThat(cut.end())
                    .as("cut at %d", first)
                    .isEqualTo(new Answer.Served(7, 2, 5, List.of(0L), 5));
        }
    }

    @Test
    void aLastTextCountsAlthoughItTellsTheEnd() {
        comes(TOKEN, 1_010);
        comes(TOKEN.replace("null", "\"stop\""), 1_030);
        comes(USAGE + DONE, 1_040);
        assertThat(stream.end()).isEqualTo(new Answer.Served(7, 2, 10, List.of(20L), 30));
    }

    @Test
    void whatEndsBeforeItsMarkHasFailed() {
        comes(TOKEN + USAGE, 1_010);
        assertThat(failure(stream)).isEqualTo("the stream ended early");
    }

    @Test
    void whatTellsNoUsageHasFailed() {
        comes(TOKEN + END + DONE, 1_010);
        assertThat(failure(stream)).contains("did not tell the usage");
    }

    @Test
    void anEmptyAnswerHasFailed() {
        comes(END + USAGE + DONE, 1_010);
        assertThat(failure(stream)).isEqualTo("the stream brought no token");
    }

    @Test
    void anErrorWithinTheStreamIsTheReason() {
        comes(TOKEN + "data: {\"error\":{\"message\":\"no memory\",\"code\":500}}\n\n", 1_010);
        comes(USAGE + DONE, 1_020);
        assertThat(failure(stream)).isEqualTo("no memory");
    }

    @Test
    void whatIsNoJsonHasFailed() {
        comes("data: {\"choices\": oops}\n\n" + TOKEN + USAGE + DONE, 1_010);
        assertThat(failure(stream)).startsWith("an event is not JSON");
    }

    @Test
    void anEndlessEventIsGivenUp() {
        comes("data: \"" + "x".repeat(2 << 20), 1_010);
        assertThat(failure(stream)).startsWith("an event has more than");
    }
}
