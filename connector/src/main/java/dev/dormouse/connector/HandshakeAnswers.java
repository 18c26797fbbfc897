package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What a peer's side channel said in one conversation.
 *
 * @param payloads one for each rank that was asked for, undecoded
 * @param clock how its clock stands to ours, from the quickest answer; null if it does not tell
 * @param holds what it said of the requests that it was asked about, by its own request ids
 */
record HandshakeAnswers(
        List<byte[]> payloads, @Nullable ClockOffset clock, Map<String, HoldAnswer> holds) {
    HandshakeAnswers {
        payloads = List.copyOf(payloads);
        holds = Map.copyOf(holds);
    }

    /** Gathers them, answer by answer. */
    static final class Collector {
        private final List<byte[]> payloads = new ArrayList<>();
        private final Map<String, HoldAnswer> holds = new HashMap<>();
        private @Nullable ClockOffset clock;
        private int bytesLeft = HandshakePayload.MAX_BYTES;

        /**
         * An answer to a question for a rank's payload.
         *
         * @param timestamp the peer's clock when it answered
         */
        void addPayload(byte[] payload, byte[] timestamp, long sentNanos, long receivedNanos) {
            WireReader in = new WireReader("handshake timestamp", timestamp, Long.BYTES + 1);
            double seconds = in.float64("timestamp");
            in.end();
            if (!Double.isFinite(seconds)) {
                throw in.fault("it is " + seconds);
            }
            bytesLeft -= payload.length;
            if (bytesLeft < 0) {
                throw new WireException(
                        "handshake payloads: those of "
                                + (payloads.size() + 1)
                                + " ranks have more than "
                                + HandshakePayload.MAX_BYTES
                                + " bytes");
            }
            payloads.add(payload);
            clock = ClockOffset.of(seconds, sentNanos, receivedNanos).orBetter(clock);
        }

        /** An answer to a question about a request. */
        void addHold(String requestId, byte[] answer, long sentNanos) {
            holds.put(requestId, HoldAnswer.decode(answer, sentNanos));
        }

        /**
         * True if the peer understands questions about requests. One of vLLM does not, and would
         * die of them: its listener ends at a message of another shape.
         */
        boolean takesHoldQuestions() {
            if (payloads.isEmpty()) {
                return false;
            }
            try {
                return HandshakePayload.decode(payloads.getFirst()).instanceId() != null;
            } catch (WireException e) {
                return false; // whoever decodes it next says why
            }
        }

        HandshakeAnswers answers() {
            return new HandshakeAnswers(payloads, clock, holds);
        }
    }
}
