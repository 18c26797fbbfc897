package dev.dormouse.server;

import dev.dormouse.engine.GenerationRequest;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A parsed request, ready to run.
 *
 * @param id the answer's id
 * @param format how the answer looks
 * @param requests one per choice, in order: all choices of the first prompt, then of the second
 * @param choices choices per prompt
 * @param prompts what is told of each prompt
 * @param generates whether output is told at all; if not, only the prompt is
 * @param stream whether the answer comes as server-sent events
 * @param usage which events of a stream tell token counts
 * @param returnTokenIds whether choices carry their token ids
 */
record Job(
        String id,
        AnswerFormat format,
        List<GenerationRequest> requests,
        int choices,
        List<PromptReport> prompts,
        boolean generates,
        boolean stream,
        StreamedUsage usage,
        boolean returnTokenIds) {
    /**
     * What an answer tells of a prompt.
     *
     * @param echo text that stands before each choice's own
     * @param echoedTop likely tokens per token of the echo; null for no log probabilities
     * @param top likely tokens per entry of {@code prompt_logprobs}; null for none
     */
    record PromptReport(String echo, @Nullable Integer echoedTop, @Nullable Integer top) {}

    /** True for the first choice of each prompt. */
    boolean isFirstOfPrompt(int index) {
        return index % choices == 0;
    }

    PromptReport prompt(int index) {
        return prompts.get(index / choices);
    }
}
