package dev.dormouse.transport.local;

import java.time.Duration;

/**
 * What peers may ask of an agent.
 *
 * @param hello how long a connection may take to say what it wants
 * @param load how long an agent waits for another one's answer
 * @param halfMade connections that have not said what they want; one more ends the oldest
 * @param sessions connections and processes that hold memory; one more is refused, if none of them
 *     only stands by
 * @param unused how long an agent keeps memory mapped that it was given and does not load
 */
record Limits(Duration hello, Duration load, int halfMade, int sessions, Duration unused) {
    static final Limits USUAL =
            new Limits(
                    Duration.ofSeconds(5), Duration.ofSeconds(2), 64, 1024, Duration.ofMinutes(1));
}
