package dev.dormouse.engine.sampling;

/** A request's own rules leave no token that could be chosen next. */
public final class NoTokenLeftException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    NoTokenLeftException() {
        super(
                "no token may be chosen: allowed_token_ids, bad_words, min_tokens and stop tokens exclude all of them together; loosen one");
    }
}
