package dev.dormouse.model.chat;

import dev.dormouse.model.ModelException;

/** A chat template is missing, malformed, exceeds a limit, or rejects the conversation. */
public final class ChatTemplateException extends ModelException {
    private static final long serialVersionUID = 1L;

    private final boolean raisedByTemplate;

    private ChatTemplateException(String message, boolean raisedByTemplate) {
        super(message);
        this.raisedByTemplate = raisedByTemplate;
    }

    static ChatTemplateException raised(String message) {
        return new ChatTemplateException(message, true);
    }

    static ChatTemplateException failed(String message) {
        return new ChatTemplateException(message, false);
    }

    /**
     * Whether the template itself called {@code raise_exception}, so that the conversation is at
     * fault and the message is the template's.
     */
    public boolean isRaisedByTemplate() {
        return raisedByTemplate;
    }
}
