package dev.dormouse.transport.local;

import java.time.Duration;

/**
 * What peers may ask of an agent.
 *
 * @param hello how long a connection may take to say what it wants
 * @param load how long an agent waits for another one's answer
 * @param halfMade connections that have not said what they want; one more ends the oldest
 * @param sessions connections and processes that hold memory; one more is refused
 */
record Limits(Duration hello, Duration load, int halfMade, int sessions) {
    static final Limits USUAL = new Limits(Duration.ofSeconds(5), Duration.ofSeconds(2), 64, 1024);
}
