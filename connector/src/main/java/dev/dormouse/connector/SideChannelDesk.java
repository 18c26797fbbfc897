package dev.dormouse.connector;

import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * What an engine answers on its side channel, and who has been given its payloads: decides from
 * bytes alone, whatever carries them. Shared by the engine's thread and those that carry.
 *
 * <p>A request for a rank that has no payload is answered with a {@linkplain
 * HandshakePayload#refusal refusal}: vLLM's readers fail on it at once, where silence would stall
 * their only handshake thread for five seconds.
 */
public final class SideChannelDesk {
    /** More of them are not told apart from those that do not subscribe. */
    static final int MAX_READERS = 1_024;

    private final String engineId;
    private final String instanceId;
    private final LongSupplier nanoClock;
    private final HoldBook holds;
    private final DemandInbox<Revocation> revocations = new DemandInbox<>();
    private final DemandInbox<PushCancel> cancellations = new DemandInbox<>();
    private final Set<Subscription.Reader> readers = new LinkedHashSet<>();
    private Map<RankId, byte[]> payloads = Map.of();
    private int anonymousReaders;
    private long epoch;

    /**
     * A desk that serves nothing yet.
     *
     * @param nanoClock stamps answers; the clock that also stamps leases
     */
    SideChannelDesk(String engineId, String instanceId, LongSupplier nanoClock, HoldBook holds) {
        this.engineId = engineId;
        this.instanceId = instanceId;
        this.nanoClock = nanoClock;
        this.holds = holds;
    }

    /** From now on, serves exactly these payloads, which nobody has been given yet. */
    synchronized void serve(long newEpoch, Map<RankId, byte[]> newPayloads) {
        epoch = newEpoch;
        payloads = Map.copyOf(newPayloads);
    }

    /** Nothing is held any more that those could read who have been given payloads until now. */
    synchronized void forgetReaders() {
        readers.clear();
        anonymousReaders = 0;
    }

    /** From now on, serves nothing; who has been given the last payloads stays known. */
    synchronized void withdraw() {
        payloads = Map.of();
    }

    /** What is served. */
    synchronized Map<RankId, byte[]> payloads() {
        return payloads;
    }

    /**
     * Those who were given payloads since readers were forgotten, and told where they are, in that
     * order.
     */
    synchronized Set<Subscription.Reader> readers() {
        return Collections.unmodifiableSet(new LinkedHashSet<>(readers));
    }

    /** How many were given payloads since then and did not tell who they are, such as vLLM's. */
    synchronized int anonymousReaders() {
        return anonymousReaders;
    }

    /** What peers revoke. */
    DemandInbox<Revocation> revocations() {
        return revocations;
    }

    /** The registrations that waiting engines take back. */
    DemandInbox<PushCancel> cancellations() {
        return cancellations;
    }

    /** A peer has connected. */
    public Session connected() {
        return new Session();
    }

    /** One peer's connection. Used by one thread at a time. */
    public final class Session {
        private static final long NONE = -1;

        /** The epoch in which this connection counts as an anonymous reader. */
        private long countedEpoch = NONE;

        private Session() {}

        /**
         * The answer to a question, or null if it is none: it is dropped then, where vLLM's
         * listener ends.
         *
         * @param question untrusted bytes
         */
        public SideChannel.@Nullable Answer answer(byte[] question) {
            byte[] body;
            try {
                body = body(question);
            } catch (WireException e) {
                System.getLogger("dormouse.connector")
                        .log(
                                System.Logger.Level.DEBUG,
                                "side channel: dropped a message: {0}",
                                e.getMessage());
                return null;
            }
            byte[] timestamp = new WireWriter().float64(nanoClock.getAsLong() / 1e9).bytes();
            return new SideChannel.Answer(body, timestamp);
        }

        private byte[] body(byte[] question) {
            HoldQuestion claim = HoldQuestion.decode(question);
            if (claim != null) {
                return holds.answer(claim);
            }
            Subscription subscription = Subscription.decode(question);
            if (subscription != null) {
                return Subscription.answer(subscribe(subscription));
            }
            Revocation revocation = Revocation.decode(question);
            if (revocation != null) {
                return reply(revocations.isDone(revocation));
            }
            PushCancel cancel = PushCancel.decode(question);
            if (cancel != null) {
                return reply(cancellations.isDone(cancel));
            }
            return payload(HandshakeRequest.decode(question));
        }

        private byte[] reply(boolean done) {
            return new DemandReply(engineId, instanceId, done).encode();
        }

        private byte[] payload(RankId rank) {
            synchronized (SideChannelDesk.this) {
                byte[] payload = payloads.get(rank);
                if (payload == null) {
                    return HandshakePayload.refusal(
                            payloads.isEmpty() ? "its KV cache is asleep" : "it has no " + rank);
                }
                if (countedEpoch != epoch) {
                    countedEpoch = epoch;
                    anonymousReaders++;
                }
                return payload;
            }
        }

        private boolean subscribe(Subscription subscription) {
            synchronized (SideChannelDesk.this) {
                if (payloads.isEmpty() || subscription.epoch() != epoch) {
                    return false;
                }
                if (readers.size() < MAX_READERS || readers.contains(subscription.reader())) {
                    readers.add(subscription.reader());
                    if (countedEpoch == epoch) {
                        countedEpoch = NONE;
                        anonymousReaders--;
                    }
                }
                return true;
            }
        }
    }
}
