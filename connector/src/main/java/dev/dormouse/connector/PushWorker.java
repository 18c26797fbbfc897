package dev.dormouse.connector;

import dev.dormouse.transport.KvTransport;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The worker's half of the push connector: vLLM's {@code NixlPushConnectorWorker}. Every rank may
 * hold, wait, or do both.
 */
final class PushWorker extends NixlWorker {
    /**
     * A worker that owns {@code transport}.
     *
     * @param ownedThreads closed with the worker
     */
    PushWorker(
            ConnectorConfig config,
            int tpRank,
            KvTransport transport,
            Surroundings surroundings,
            AutoCloseable ownedThreads) {
        super(config, tpRank, transport, surroundings, ownedThreads);
    }

    @Override
    Traffic traffic(Traffic.Parts parts) {
        return new Pushing(parts);
    }

    /** The traffic of a rank that writes and is written to. */
    private static final class Pushing implements Traffic, OrderRules {
        private final Parts parts;
        private final LongSupplier nanoClock;
        private @Nullable PushSender sender;
        private @Nullable PushReceiver receiver;

        private Pushing(Parts parts) {
            this.parts = parts;
            this.nanoClock = parts.nanoClock();
        }

        @Override
        public OrderRules rules() {
            return this;
        }

        @Override
        public void through(RemoteEngines engines) {
            sender = new PushSender(parts, engines);
            receiver = new PushReceiver(parts, engines);
        }

        @Override
        public void start(ConnectorStep step, long nowNanos) {
            sender().start(step, nowNanos);
            receiver().start(step, nowNanos);
        }

        @Override
        public void take(Notification message, String agentName, long nowNanos) {
            switch (message) {
                case PushRegistration registration ->
                        sender().take(registration, agentName, nowNanos);
                case PushEnd end -> receiver().take(end, agentName, nowNanos);
                case Notification.Renewal renewal -> parts.ledger().renew(renewal, nowNanos);
                case Notification.Completion completion -> {
                    if (!completion.claimed()) { // a holder has written
                        receiver().written(completion.requestId(), agentName);
                    } else if (!sender().isServing(completion.requestId())) {
                        // Who is written to does not say so: somebody else has no need of it.
                        parts.ledger().complete(completion, agentName, parts.finishedSending());
                    }
                }
                case Notification.Malformed _ -> {} // counted where it was decoded
            }
        }

        @Override
        public void take(PushCancel cancel) {
            sender().take(cancel);
        }

        @Override
        public Set<String> takeObeyed(long nowNanos) {
            return sender().takeObeyed(nowNanos);
        }

        @Override
        public List<LoadedEngine> progress(long nowNanos) {
            receiver().progress(nowNanos);
            return sender().progress(nowNanos);
        }

        @Override
        public void beforeRelease(long nowNanos) {
            receiver().beforeRelease(nowNanos);
            sender().beforeRelease(nowNanos);
        }

        @Override
        public boolean isQuiet() {
            return receiver().isQuiet() && sender().isQuiet();
        }

        @Override
        public List<String> describe(long nowNanos) {
            List<String> pending = new ArrayList<>(receiver().describe(nowNanos));
            pending.addAll(sender().describe(nowNanos));
            return pending;
        }

        @Override
        public boolean isSending(String requestId) {
            return sender().isSending(requestId);
        }

        @Override
        public Next next(WaitingOrder waiting, RemoteEngine peer, long nowNanos) {
            return switch (waiting.order()) {
                case ReadOrder _ -> receiver().next(waiting, peer, nowNanos);
                case WriteOrder _ -> sender().next(waiting, peer, nowNanos);
            };
        }

        @Override
        public void ended(PeerOrder order, Failure failure) {
            switch (order) {
                case ReadOrder read -> receiver().ended(read, failure);
                case WriteOrder write -> sender().ended(write, failure, nanoClock.getAsLong());
            }
        }

        @Override
        public void forget(long nowNanos) {}

        private PushSender sender() {
            return Objects.requireNonNull(sender);
        }

        private PushReceiver receiver() {
            return Objects.requireNonNull(receiver);
        }
    }
}
