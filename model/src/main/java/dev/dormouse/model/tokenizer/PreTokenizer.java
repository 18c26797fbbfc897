package dev.dormouse.model.tokenizer;

import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The ways to cut a text into words before pairs are merged; merging never crosses a cut.
 *
 * <p>Each is a row of patterns. The first cuts the text into its matches and what lies between
 * them, and each further one does so inside every piece so far. The rows are those that llama.cpp
 * 0.3.36's {@code llama-vocab.cpp} gives to the names, with Unicode white space for {@code \s}.
 */
final class PreTokenizer {
    static final String GPT2_WORDS =
            "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
                    + "|\\s+(?!\\S)|\\s+";
    private static final String LLAMA3_WORDS =
            "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
                    + "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}%s"
                    + "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

    private static final List<PreTokenizer> ALL =
            List.of(
                    new PreTokenizer(false, Set.of("gpt-2"), GPT2_WORDS),
                    // As GPT-2, but every digit by itself.
                    new PreTokenizer(false, Set.of("smollm"), "\\p{N}", GPT2_WORDS),
                    // What llama.cpp does for files of which it knows nothing better.
                    new PreTokenizer(
                            false,
                            Set.of("default"),
                            "[\\p{P}$+<=>^~|]+",
                            GPT2_WORDS,
                            "\\p{N}+",
                            "[0-9][0-9][0-9]"),
                    // Digits in groups of up to three.
                    new PreTokenizer(
                            true,
                            Set.of("llama-bpe", "llama3", "llama-v3"),
                            LLAMA3_WORDS.formatted("{1,3}")),
                    // As Llama 3, but every digit by itself.
                    new PreTokenizer(false, Set.of("qwen2"), LLAMA3_WORDS.formatted("")));

    private final boolean llama3Habits;
    private final Set<String> names;
    private final List<Pattern> patterns;

    private PreTokenizer(boolean llama3Habits, Set<String> names, String... patterns) {
        this(
                llama3Habits,
                names,
                Arrays.stream(patterns)
                        .map(p -> p.replace("\\s", "\\p{IsWhite_Space}"))
                        .map(p -> p.replace("\\S", "\\P{IsWhite_Space}"))
                        .map(Pattern::compile)
                        .toList());
    }

    private PreTokenizer(boolean llama3Habits, Set<String> names, List<Pattern> patterns) {
        this.llama3Habits = llama3Habits;
        this.names = names;
        this.patterns = patterns;
    }

    /** The one that cuts by these patterns, one after the other. */
    static PreTokenizer of(List<Pattern> patterns) {
        return new PreTokenizer(false, Set.of(), patterns);
    }

    /**
     * The one that a file's {@code tokenizer.ggml.pre} names.
     *
     * @throws TokenizerException when it is not supported
     */
    static PreTokenizer named(String name) {
        for (PreTokenizer candidate : ALL) {
            if (candidate.names.contains(name)) {
                return candidate;
            }
        }
        Set<String> known = new TreeSet<>();
        ALL.forEach(p -> known.addAll(p.names));
        throw new TokenizerException(
                "load tokenizer: pre-tokenizer '" + name + "' is not supported, only " + known);
    }

    /**
     * Whether, as in Llama 3, texts begin with the BOS token when the file does not say, and a word
     * that is a token as a whole is taken as one.
     */
    boolean hasLlama3Habits() {
        return llama3Habits;
    }

    /** Hands the words of {@code text} to {@code sink}, in order. */
    void split(String text, Consumer<String> sink) {
        int[] cuts = {0, text.length()};
        int count = text.isEmpty() ? 1 : 2;
        for (Pattern pattern : patterns) {
            Cuts refined = new Cuts(0);
            Matcher matcher = pattern.matcher(text);
            for (int i = 1; i < count; i++) {
                // Opaque bounds: a lookahead takes the end of the piece for the end of the text.
                matcher.region(cuts[i - 1], cuts[i]);
                while (matcher.find()) {
                    refined.add(matcher.start());
                    refined.add(matcher.end());
                }
                refined.add(cuts[i]);
            }
            cuts = refined.positions;
            count = refined.count;
        }
        for (int i = 1; i < count; i++) {
            sink.accept(text.substring(cuts[i - 1], cuts[i]));
        }
    }

    /** Ascending positions, without repetition. */
    private static final class Cuts {
        private int[] positions = new int[16];
        private int count = 1;

        Cuts(int first) {
            positions[0] = first;
        }

        void add(int position) {
            if (positions[count - 1] == position) {
                return;
            }
            if (count == positions.length) {
                positions = Arrays.copyOf(positions, count * 2);
            }
            positions[count++] = position;
        }
    }
}
