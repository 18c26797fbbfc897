package dev.dormouse.server;

import dev.dormouse.engine.GenerationRequest;
import java.util.List;

/**
 * A parsed request, ready to run.
 *
 * @param id the answer's id
 * @param format how the answer looks
 * @param requests one per choice, in order
 * @param stream whether the answer comes as server-sent events
 * @param includeUsage whether a stream ends with an event of token counts
 * @param returnTokenIds whether choices carry their token ids
 */
record Job(
        String id,
        AnswerFormat format,
        List<GenerationRequest> requests,
        boolean stream,
        boolean includeUsage,
        boolean returnTokenIds) {}
