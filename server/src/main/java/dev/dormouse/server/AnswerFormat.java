package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.engine.GenerationEvent.TokenLogprobs;
import java.util.List;

/**
 * What differs between the answers of the completion endpoints. Holds nothing of a single request.
 */
interface AnswerFormat {
    /** The {@code object} field of a whole answer. */
    String wholeName();

    /** The {@code object} field of a streamed piece. */
    String pieceName();

    /** Puts a whole choice's text. */
    void putWhole(ObjectNode choice, String text);

    /** Puts a piece of a choice's text. */
    void putPiece(ObjectNode choice, String text);

    /** True if a stream opens with an event per choice that carries no text. */
    boolean opens();

    /** Puts what the opening event of a choice says. */
    void putOpening(ObjectNode choice);

    /**
     * Puts log probabilities.
     *
     * @param offset characters of the choice's text before these tokens
     */
    void putLogprobs(ObjectNode choice, List<TokenLogprobs> logprobs, int offset);
}
