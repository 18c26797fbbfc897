package dev.dormouse.engine.output;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.StopReason;
import dev.dormouse.engine.TokenRules;
import dev.dormouse.testkit.Seeded;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class OutputProcessorTest {
    private static final int END = 0;

    /**
     * Token ids are characters; a surrogate pair's halves come as two tokens, and the first is held
     * back.
     */
    private static final class Characters implements TextDecoder {
        private String open = "";

        @Override
        public String push(int tokenId) {
            String all = open + (char) tokenId;
            open = Character.isHighSurrogate((char) tokenId) ? all : "";
            return open.isEmpty() ? all : "";
        }

        @Override
        public String finish() {
            String rest = open.isEmpty() ? "" : "\uFFFD";
            open = "";
            return rest;
        }
    }

    private static SamplingParameters parameters(
            int maxTokens, int minTokens, List<String> stop, Set<Integer> stopIds) {
        return new SamplingParameters(
                0, 0, 1, 0, null, 1, 0, 0, maxTokens, minTokens, stop, stopIds, false, null);
    }

    private static OutputProcessor processor(SamplingParameters parameters) {
        return new OutputProcessor(parameters, Set.of(END), 1000, new Characters());
    }

    private static OutputProcessor processor(String... stop) {
        return processor(parameters(100, 0, List.of(stop), Set.of()));
    }

    /** All text of a sequence, piece by piece, ending with the finish reason. */
    private static List<String> run(OutputProcessor processor, String tokens) {
        List<String> pieces = new ArrayList<>();
        for (int i = 0; i < tokens.length(); i++) {
            OutputProcessor.Step step = processor.accept(tokens.charAt(i));
            pieces.add(step.text());
            if (step.finish() != null) {
                pieces.add(step.finish() + reason(step.stopReason()));
                break;
            }
        }
        return pieces;
    }

    private static String reason(@Nullable StopReason reason) {
        return switch (reason) {
            case null -> "";
            case StopReason.Text(String stop) -> ":" + stop;
            case StopReason.Token(int tokenId) -> ":#" + tokenId;
        };
    }

    @Test
    void passesTextThroughAtOnceWithoutStopStrings() {
        assertThat(run(processor(), "abc")).containsExactly("a", "b", "c");
    }

    @Test
    void endTokensGiveNoTextAndEndTheSequence() {
        assertThat(run(processor(), "ab\0")).containsExactly("a", "b", "", "STOP");
    }

    @Test
    void stopTokensNameThemselves() {
        OutputProcessor processor = processor(parameters(100, 0, List.of(), Set.of((int) 'b')));
        assertThat(run(processor, "abc")).containsExactly("a", "", "STOP:#98");
    }

    @Test
    void endsAtItsTokenLimitAndAtTheModelsLength() {
        assertThat(run(processor(parameters(2, 0, List.of(), Set.of())), "abc"))
                .containsExactly("a", "b", "LENGTH");
        OutputProcessor room =
                new OutputProcessor(
                        parameters(100, 0, List.of(), Set.of()), Set.of(END), 1, new Characters());
        assertThat(run(room, "abc")).containsExactly("a", "LENGTH");
    }

    @Test
    void holdsBackOnlyWhatMayBeginAStopString() {
        assertThat(run(processor("xyz"), "axxyzb"))
                .containsExactly("a", "", "x", "", "", "STOP:xyz");
        assertThat(run(processor("xyz"), "axyb")).containsExactly("a", "", "", "xyb");
    }

    @Test
    void givesBackHeldTextWhenTheSequenceEndsOtherwise() {
        assertThat(run(processor("xyz"), "axy\0")).containsExactly("a", "", "", "xy", "STOP");
        assertThat(run(processor(parameters(3, 0, List.of("xyz"), Set.of())), "axy"))
                .containsExactly("a", "", "xy", "LENGTH");
        OutputProcessor processor = processor("xyz");
        assertThat(processor.accept('x').text()).isEmpty();
        assertThat(processor.abandon()).isEqualTo("x");
    }

    @Test
    void theStopStringThatBeginsFirstWins() {
        assertThat(run(processor("cd", "bcd"), "abcd"))
                .containsExactly("a", "", "", "", "STOP:bcd");
    }

    @Test
    void aStopStringOutranksTheLimitThatIsReachedWithIt() {
        assertThat(run(processor(parameters(3, 0, List.of("bc"), Set.of())), "abc"))
                .containsExactly("a", "", "", "STOP:bc");
    }

    @Test
    void nothingStopsBelowMinTokens() {
        OutputProcessor processor = processor(parameters(100, 3, List.of("b"), Set.of((int) 'a')));
        assertThat(run(processor, "bbcb")).containsExactly("b", "b", "c", "", "STOP:b");
        OutputProcessor byToken = processor(parameters(100, 3, List.of(), Set.of((int) 'a')));
        assertThat(run(byToken, "aaa")).containsExactly("a", "a", "", "STOP:#97");
    }

    @Test
    void includesWhatWasMetIfAskedTo() {
        assertThat(run(including(List.of("xyz"), Set.of()), "axyzb"))
                .containsExactly("a", "", "", "xyz", "STOP:xyz");
        assertThat(run(including(List.of(), Set.of((int) 'b')), "abc"))
                .containsExactly("a", "b", "STOP:#98");
        assertThat(run(including(List.of("yz"), Set.of()), "axy\0"))
                .containsExactly("a", "x", "", "y\0", "STOP");
    }

    private static OutputProcessor including(List<String> stop, Set<Integer> stopIds) {
        return processor(
                new SamplingParameters(
                        0,
                        0,
                        1,
                        0,
                        null,
                        1,
                        0,
                        0,
                        100,
                        0,
                        stop,
                        stopIds,
                        false,
                        null,
                        null,
                        TokenRules.NONE,
                        true,
                        true));
    }

    @Test
    void aCharacterSplitOverTokensComesWholeOrAsReplacement() {
        assertThat(run(processor(), "a\uD83D\uDE00b"))
                .containsExactly("a", "", "\uD83D\uDE00", "b");
        assertThat(run(processor(), "a\uD83D\0")).containsExactly("a", "", "\uFFFD", "STOP");
    }

    /**
     * Against the whole text at once: the output is the text up to the first stop string, however
     * it was cut.
     */
    @Test
    void findsWhatASearchOfTheWholeTextFinds() {
        Seeded.forAll(
                500,
                random -> {
                    String text =
                            randomText(random.nextInt(1, 30), random.ints(40, 'a', 'd').toArray());
                    List<String> stops =
                            IntStream.range(0, random.nextInt(1, 4))
                                    .mapToObj(
                                            i ->
                                                    randomText(
                                                            random.nextInt(1, 5),
                                                            random.ints(40, 'a', 'd').toArray()))
                                    .toList();
                    int end = text.length();
                    for (int stopEnd = 1;
                            stopEnd <= text.length() && end == text.length();
                            stopEnd++) {
                        String seen = text.substring(0, stopEnd);
                        end =
                                stops.stream()
                                        .filter(seen::contains)
                                        .mapToInt(seen::indexOf)
                                        .min()
                                        .orElse(end);
                    }
                    List<String> pieces = run(processor(stops.toArray(String[]::new)), text + "\0");
                    pieces.removeLast();
                    assertThat(String.join("", pieces)).isEqualTo(text.substring(0, end));
                });
    }

    private static String randomText(int length, int[] characters) {
        return new String(characters, 0, length);
    }
}
