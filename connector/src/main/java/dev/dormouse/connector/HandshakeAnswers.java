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
 * @param holds what it said of the requests that it was asked about
 */
record HandshakeAnswers(
        List<byte[]> payloads, @Nullable ClockOffset clock, Map<HoldQuestion, HoldAnswer> holds) {
    HandshakeAnswers {
        payloads = List.copyOf(payloads);
        holds = Map.copyOf(holds);
    }

    /** Gathers them, answer by answer. */
    static final class Collector {
        private final List<byte[]> payloads = new ArrayList<>();
        private final Map<HoldQuestion, HoldAnswer> holds = new HashMap<>();
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
        void addHold(HoldQuestion claim, byte[] answer, long sentNanos) {
            holds.put(claim, HoldAnswer.decode(answer, claim, sentNanos));
        }

        /**
         * True if the peer understands more questions than vLLM's. One of vLLM does not, and would
         * die of them: its listener ends at a message of another shape.
         */
        boolean isOfOurKind() {
            HandshakePayload first = payload(0);
            return first != null && first.instanceId() != null;
        }

        /**
         * The epoch to subscribe to: 0 if the peer does not take subscriptions, or if the payloads
         * are of several registrations, through which nothing can be read.
         */
        long epochToSubscribe() {
            long epoch = 0;
            for (int i = 0; i < payloads.size(); i++) {
                HandshakePayload payload = payload(i);
                if (payload == null
                        || payload.instanceId() == null
                        || (i > 0 && payload.epoch() != epoch)) {
                    return 0;
                }
                epoch = payload.epoch();
            }
            return epoch;
        }

        private @Nullable HandshakePayload payload(int index) {
            try {
                return index < payloads.size()
                        ? HandshakePayload.decode(payloads.get(index))
                        : null;
            } catch (WireException e) {
                return null; // whoever decodes it next says why
            }
        }

        HandshakeAnswers answers() {
            return new HandshakeAnswers(payloads, clock, holds);
        }
    }
}
