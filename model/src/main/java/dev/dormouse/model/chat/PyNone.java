package dev.dormouse.model.chat;

/** Python's {@code None}. */
enum PyNone {
    NONE
}
