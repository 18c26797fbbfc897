package dev.dormouse.connector;

import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.PeerMessage;
import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The worker's half of the NIXL connectors: the registration of the KV cache and its renewal when
 * pages are replaced, the requests that are held here, and the orders to receive what others hold.
 * How blocks move is up to {@link PullWorker} and {@link PushWorker}.
 */
abstract sealed class NixlWorker implements WorkerConnector permits PullWorker, PushWorker {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    private final ConnectorConfig config;
    private final int tpRank;
    private final KvTransport transport;
    private final Surroundings surroundings;
    private final AutoCloseable ownedThreads;
    private final StatisticsRecorder statistics = new StatisticsRecorder();
    private final ReadOutcomes outcomes;
    private final Set<String> finishedSending = new HashSet<>();
    private final SendLedger ledger;
    private volatile Runnable wake = () -> {};
    private @Nullable Open open;
    private boolean released;
    private boolean closed;

    /** Messages that the transport had dropped when it was last asked. */
    private long rejectedMessages;

    /** What exists once the KV cache is registered. */
    private record Open(LocalCache local, RemoteEngines engines, Traffic traffic) {}

    /** Makes the traffic of a rank whose KV cache was registered. */
    abstract Traffic traffic(Traffic.Parts parts);

    /**
     * A worker that owns {@code transport}.
     *
     * @param ownedThreads closed with the worker
     */
    NixlWorker(
            ConnectorConfig config,
            int tpRank,
            KvTransport transport,
            Surroundings surroundings,
            AutoCloseable ownedThreads) {
        this.config = config;
        this.outcomes = new ReadOutcomes(new TransferFailureLog(config.engineId()));
        this.tpRank = tpRank;
        this.transport = transport;
        this.surroundings = surroundings;
        this.ownedThreads = ownedThreads;
        this.ledger = new SendLedger(config.leaseExtension(), config.holdLimit(), statistics);
    }

    @Override
    public void registerKvCaches(KvCacheRegions regions) {
        if (open != null || closed) {
            throw new IllegalStateException("register: called twice, or after close");
        }
        if (regions.blockTokens() != config.blockTokens()) {
            throw new ConnectorException(
                    "register: the KV cache has "
                            + regions.blockTokens()
                            + " tokens per block, the configuration "
                            + config.blockTokens());
        }
        LocalCache local = new LocalCache(transport, config, regions);
        local.register();
        statistics.registration();
        PeerMessenger messenger = new PeerMessenger(transport, statistics);
        Traffic traffic =
                traffic(
                        new Traffic.Parts(
                                config,
                                transport,
                                local,
                                messenger,
                                outcomes,
                                ledger,
                                finishedSending,
                                statistics,
                                surroundings.nanoClock()));
        RemoteEngines engines =
                new RemoteEngines(
                        transport,
                        config,
                        new Handshakes(
                                config,
                                tpRank,
                                regions,
                                transport,
                                new HandshakeClient(
                                        surroundings.dialer(), surroundings.nanoClock()),
                                surroundings.threads(),
                                () -> wake.run(),
                                surroundings.nanoClock()),
                        traffic.rules(),
                        messenger,
                        statistics);
        traffic.through(engines);
        open = new Open(local, engines, traffic);
    }

    @Override
    public void wakeWith(Runnable waking) {
        wake = waking;
        transport.wakeWith(waking);
    }

    @Override
    public RankPayload payload() {
        if (released) {
            throw new IllegalStateException("payload: the KV cache is released");
        }
        return new RankPayload(0, tpRank, required().local().metadata());
    }

    @Override
    public void start(ConnectorStep step) {
        Open open = required();
        long nowNanos = now();
        ledger.take(step, nowNanos, finishedSending, open.traffic()::isSending);
        open.engines().reachableAt(step.sideChannelPort());
        step.revocations().forEach(open.engines()::revoke);
        step.push().takenBack().forEach(open.traffic()::take);
        if (!released) {
            open.traffic().start(step, nowNanos);
        }
        for (ReadOrder order : step.reads()) {
            String refusal = order.refusal();
            if (refusal != null) {
                statistics.failedTransfer();
                outcomes.failed(order, setupFailed(refusal));
            } else if (!released) {
                open.engines().submit(order, arrival(order, step, nowNanos), nowNanos);
            } else if (order.localBlocks().isEmpty()) { // the holder's lease will run out
                statistics.failedNotification();
                outcomes.done(order);
            } else {
                statistics.failedTransfer();
                outcomes.failed(order, setupFailed("this engine's KV cache is released"));
            }
        }
        if (!released) {
            step.heartbeats().forEach(heartbeat -> open.engines().renew(heartbeat, nowNanos));
        }
    }

    @Override
    public WorkerReport poll() {
        Open open = required();
        progress(open);
        Set<String> obeyed = open.engines().takeRevoked();
        obeyed.addAll(open.traffic().takeObeyed(now()));
        WorkerReport report =
                outcomes.take(
                        finishedSending,
                        ledger.takeRenewed(),
                        ledger.takeReadUnclaimed(),
                        obeyed,
                        statistics.take());
        finishedSending.clear();
        return report;
    }

    @Override
    public void prepareRelease(Duration limit) {
        Open open = required();
        if (!released) {
            open.traffic().beforeRelease(now());
            awaitQuiet(open, limit);
        }
    }

    @Override
    public void releaseKvCaches(Duration limit) {
        Open open = required();
        if (released) {
            dropLeftover(open.local());
            return;
        }
        open.traffic().beforeRelease(now());
        awaitQuiet(open, limit);
        if (!config.skipReregistration()) {
            open.engines().dropAll();
            open.local().deregister();
        }
        released = true;
        LOG.log(System.Logger.Level.INFO, "KV cache released: tpRank={0}", tpRank);
    }

    /**
     * What a failed restore could not undo would pin the pages, and outlive them: the next restore
     * would build on it.
     */
    private void dropLeftover(LocalCache local) {
        if (!config.skipReregistration() && local.state() != LocalCache.State.RELEASED) {
            local.deregister();
        }
    }

    @Override
    public void restoreKvCaches() {
        Open open = required();
        if (!released && open.local().state() == LocalCache.State.REGISTERED) {
            open.local().readmit();
            return;
        }
        if (!config.skipReregistration()) {
            open.local().register();
            statistics.registration();
        }
        released = false;
        LOG.log(System.Logger.Level.INFO, "KV cache restored: tpRank={0}", tpRank);
    }

    @Override
    public boolean isReleased() {
        return released;
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        try (AutoCloseable _ = ownedThreads) {
            transport.close();
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new ConnectorException("close: " + e.getMessage(), e);
        }
    }

    private static Failure setupFailed(String reason) {
        return new Failure(Failure.Type.TRANSFER_SETUP_FAILED, reason);
    }

    /** When an order's request came, on this rank's clock. */
    private static long arrival(ReadOrder order, ConnectorStep step, long nowNanos) {
        double seconds = order.arrivedSeconds();
        return Double.isNaN(seconds)
                ? nowNanos
                : nowNanos - (long) ((step.schedulerClockSeconds() - seconds) * 1e9);
    }

    private void awaitQuiet(Open open, Duration limit) {
        long startNanos = now();
        boolean revoking = false;
        progress(open);
        while (true) {
            if (open.traffic().isQuiet() && open.engines().isQuiet()) {
                List<String> users = revoke(open);
                if (users.isEmpty()) {
                    return;
                }
                if (!revoking) {
                    revoking = true;
                    statistics.revokedMappings(users.size());
                }
            }
            if (now() - startNanos >= limit.toNanos()) {
                List<String> pending = new ArrayList<>(open.traffic().describe(now()));
                pending.addAll(open.engines().describe(now()));
                revoke(open).forEach(user -> pending.add("memory in use by " + user));
                open.local().readmit();
                throw new ReleaseTimeoutException(
                        "release of the KV cache: still pending after "
                                + limit
                                + ": "
                                + String.join("; ", pending)
                                + "; everything stays registered");
            }
            surroundings.idle().run();
            progress(open);
        }
    }

    private List<String> revoke(Open open) {
        return config.skipReregistration() ? List.of() : open.local().revoke();
    }

    private void progress(Open open) {
        long nowNanos = now();
        drain().forEach(message -> take(open, message, nowNanos));
        ledger.expire(nowNanos, finishedSending, open.traffic()::isSending);
        open.engines().progress(open.traffic().progress(nowNanos), nowNanos);
    }

    private void take(Open open, PeerMessage message, long nowNanos) {
        Notification notification = Notification.decode(message.bytes());
        if (notification instanceof Notification.Malformed malformed) {
            statistics.malformedNotification();
            LOG.log(
                    System.Logger.Level.WARNING,
                    "dropped a message: agent={0} problem={1}",
                    Excerpt.of(message.agentName()),
                    malformed.problem());
        } else {
            open.traffic().take(notification, message.agentName(), nowNanos);
        }
    }

    /** Peers' messages. A failure costs at most those of this moment; leases cover their loss. */
    private List<PeerMessage> drain() {
        try {
            return transport.messages();
        } catch (TransportException e) {
            statistics.failedNotification();
            LOG.log(System.Logger.Level.WARNING, "could not take messages: {0}", e.getMessage());
            return List.of();
        } finally {
            countRejected(transport.rejectedMessages());
        }
    }

    private void countRejected(long rejected) {
        if (rejected > rejectedMessages) {
            statistics.malformedNotifications(rejected - rejectedMessages);
            LOG.log(
                    System.Logger.Level.WARNING,
                    "the transport dropped messages: count={0}",
                    rejected - rejectedMessages);
            rejectedMessages = rejected;
        }
    }

    private Open required() {
        if (closed) {
            throw new IllegalStateException("the connector's worker is closed");
        }
        if (open == null) {
            throw new IllegalStateException("the KV cache is not registered yet");
        }
        return open;
    }

    private long now() {
        return surroundings.nanoClock().getAsLong();
    }
}
