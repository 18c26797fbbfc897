package dev.dormouse.engine.output;

import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.StopReason;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Follows one sequence's output: makes text of its tokens and finds its end.
 *
 * <p>As in vLLM: an end or stop token counts as output but gives no text; a stop string and what
 * follows it give no text; below {@code min_tokens} nothing stops; a stop string outranks the
 * length that is reached with it. {@code include_stop_str_in_output} keeps what was met in the
 * text.
 */
public final class OutputProcessor {
    private final SamplingParameters parameters;
    private final Set<Integer> endTokens;
    private final int outputLimit;
    private final TextDecoder decoder;
    private final StopStrings stops;
    private int tokens;

    /**
     * A processor at the start of its sequence's output.
     *
     * @param endTokens the model's own end tokens
     * @param roomTokens output tokens that fit behind the prompt within the model's length
     */
    public OutputProcessor(
            SamplingParameters parameters,
            Set<Integer> endTokens,
            int roomTokens,
            TextDecoder decoder) {
        this.parameters = parameters;
        this.endTokens = endTokens;
        this.outputLimit = Math.min(parameters.maxTokens(), roomTokens);
        this.decoder = decoder;
        this.stops = new StopStrings(parameters.stop(), parameters.includeStop());
    }

    /**
     * What a token led to.
     *
     * @param text text for the client
     * @param finish why the sequence ends with this token, or null if it goes on
     * @param stopReason the request's own stop string or token id that ended it
     */
    public record Step(
            String text, @Nullable FinishReason finish, @Nullable StopReason stopReason) {}

    /** Takes the next token. Nothing may be taken after a step that finished. */
    public Step accept(int token) {
        tokens++;
        boolean mayStop = tokens >= parameters.minTokens();
        if (mayStop && !parameters.ignoreEos() && endTokens.contains(token)) {
            return ended(token, null);
        }
        if (mayStop && parameters.stopTokenIds().contains(token)) {
            return ended(token, new StopReason.Token(token));
        }
        String piece = decoder.push(token);
        if (tokens == outputLimit) {
            piece += decoder.finish();
        }
        // vLLM looks for stop strings only beyond min_tokens, for tokens already at it.
        if (tokens <= parameters.minTokens() && parameters.minTokens() > 0) {
            return goOn(stops.pass(piece));
        }
        StopStrings.Scan scan = stops.push(piece);
        return scan.met() != null
                ? new Step(scan.text(), FinishReason.STOP, new StopReason.Text(scan.met()))
                : goOn(scan.text());
    }

    /** The text that was held back, when the sequence is ended from outside. */
    public String abandon() {
        return stops.pass(decoder.finish());
    }

    private Step goOn(String text) {
        return tokens < outputLimit
                ? new Step(text, null, null)
                : new Step(text + stops.finish(), FinishReason.LENGTH, null);
    }

    private Step ended(int token, @Nullable StopReason stopReason) {
        String last = parameters.includeStop() ? decoder.push(token) : "";
        StopStrings.Scan scan = stops.push(last + decoder.finish());
        return scan.met() != null
                ? new Step(scan.text(), FinishReason.STOP, new StopReason.Text(scan.met()))
                : new Step(scan.text() + stops.finish(), FinishReason.STOP, stopReason);
    }
}
