package dev.dormouse.server;

import dev.dormouse.engine.GenerationRequest;
import java.util.List;

/**
 * A parsed request, ready to run.
 *
 * @param id the answer's id
 * @param format how the answer looks
 * @param requests one per choice, in order: all choices of the first prompt, then of the second
 * @param choices choices per prompt
 * @param stream whether the answer comes as server-sent events
 * @param includeUsage whether a stream ends with an event of token counts
 * @param returnTokenIds whether choices carry their token ids
 */
record Job(
        String id,
        AnswerFormat format,
        List<GenerationRequest> requests,
        int choices,
        boolean stream,
        boolean includeUsage,
        boolean returnTokenIds) {
    /** True for the first choice of each prompt. */
    boolean isFirstOfPrompt(int index) {
        return index % choices == 0;
    }
}
