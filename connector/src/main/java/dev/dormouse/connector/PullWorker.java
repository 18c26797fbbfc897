package dev.dormouse.connector;

import dev.dormouse.transport.KvTransport;
import java.util.List;
import java.util.Set;

/** The worker's half of the pull connector: vLLM's {@code NixlPullConnectorWorker}. */
final class PullWorker extends NixlWorker {
    /**
     * A worker that owns {@code transport}.
     *
     * @param ownedThreads closed with the worker
     */
    PullWorker(
            ConnectorConfig config,
            int tpRank,
            KvTransport transport,
            Surroundings surroundings,
            AutoCloseable ownedThreads) {
        super(config, tpRank, transport, surroundings, ownedThreads);
    }

    @Override
    Traffic traffic(Traffic.Parts parts) {
        ActiveReads reads =
                new ActiveReads(
                        parts.transport(),
                        parts.local(),
                        parts.outcomes(),
                        parts.statistics(),
                        parts.config().readTimeout(),
                        parts.nanoClock());
        OrderRules rules =
                new PullRules(parts.config(), parts.messenger(), reads, parts.outcomes());
        return new Reading(
                rules, reads, parts.ledger(), parts.finishedSending(), parts.statistics());
    }

    /** The traffic of a rank that reads and is read from. */
    private record Reading(
            OrderRules rules,
            ActiveReads reads,
            SendLedger ledger,
            Set<String> finishedSending,
            StatisticsRecorder statistics)
            implements Traffic {
        @Override
        public void take(Notification message, String agentName, long nowNanos) {
            switch (message) {
                case Notification.Renewal renewal -> ledger.renew(renewal, nowNanos);
                case Notification.Completion completion ->
                        ledger.complete(completion, agentName, finishedSending);
                case PushRegistration _, PushEnd _, Notification.Malformed _ ->
                        statistics.malformedNotification();
            }
        }

        @Override
        public List<LoadedEngine> progress(long nowNanos) {
            return reads.progress(nowNanos);
        }

        @Override
        public boolean isQuiet() {
            return reads.isEmpty();
        }

        @Override
        public List<String> describe(long nowNanos) {
            return reads.describe(nowNanos);
        }
    }
}
