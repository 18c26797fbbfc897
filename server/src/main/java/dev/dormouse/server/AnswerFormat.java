package dev.dormouse.server;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.engine.GenerationEvent.TokenLogprobs;
import java.util.List;

/** What differs between the answers of the completion endpoints, for one request. */
interface AnswerFormat {
    /** The {@code object} field of a whole answer. */
    String wholeName();

    /** The {@code object} field of a streamed piece. */
    String pieceName();

    /** How tokens are spelled. */
    TokenSpelling spelling();

    /** Takes a choice's text apart; a new one for each choice. */
    Pieces pieces();

    /** Puts all that a choice says. */
    void putWhole(ObjectNode choice, List<Part> parts);

    /** Puts some of what a choice says. */
    void putPiece(ObjectNode choice, List<Part> parts);

    /** True if a stream opens with an event per choice that carries no text. */
    boolean opens();

    /** Puts what the opening event of a choice says. */
    void putOpening(ObjectNode choice);

    /** Where what is told of the prompt stands: in the answer, or in each of its choices. */
    ObjectNode promptHome(ObjectNode answer, ObjectNode choice);

    /**
     * Puts log probabilities.
     *
     * @param logprobs one whose own value is NaN has none: it is the prompt's first token
     * @param offset characters of the choice's text before these tokens
     */
    void putLogprobs(ObjectNode choice, List<TokenLogprobs> logprobs, int offset);
}
