package dev.dormouse.model.chat;

/**
 * What a missing name or field gives: empty as text, false, and an error when used for more.
 *
 * @param reason for the error, such as {@code 'x' is undefined}
 */
record PyUndefined(String reason) {
    ChatTemplateException failure() {
        return ChatTemplateException.failed("render chat template: " + reason);
    }
}
