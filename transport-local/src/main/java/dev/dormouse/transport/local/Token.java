package dev.dormouse.transport.local;

import java.security.SecureRandom;

/** 128 random bits: nobody has had them before, and nobody guesses them. */
record Token(long high, long low) {
    static final int BYTES = 16;

    private static final SecureRandom RANDOM = new SecureRandom();

    static Token random() {
        return new Token(RANDOM.nextLong(), RANDOM.nextLong());
    }

    @Override
    public String toString() {
        return "%016x%016x".formatted(high, low);
    }
}
