package dev.dormouse.router.routing;

/**
 * Why a request goes to a decode engine alone. A hand-over names one request and one list of
 * blocks, so it cannot serve these.
 */
public enum Detour {
    /** {@code n} or {@code best_of} above 1. */
    CHOICES("choices"),
    /** {@code use_beam_search}. */
    BEAM_SEARCH("beam_search"),
    /** A list of prompts. */
    PROMPTS("prompts"),
    /** Log probabilities of the prompt, which only the engine that computes it knows. */
    PROMPT_LOGPROBS("prompt_logprobs"),
    /** A prompt that each engine would cut to its own length. */
    TRUNCATION("truncation");

    private final String label;

    Detour(String label) {
        this.label = label;
    }

    /** The value of the metrics' {@code reason} label. */
    public String label() {
        return label;
    }
}
