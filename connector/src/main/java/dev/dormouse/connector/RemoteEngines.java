package dev.dormouse.connector;

import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * The peers of one rank: decides for each ordered read whether it may go through what is loaded,
 * must ask the peer first, or comes too late.
 *
 * <p>A peer is asked, at most once at a time, when it is not loaded, when a request names a newer
 * registration or other ranks than the loaded ones, and when one does not tell which it means.
 * Where the parameters do not tell which registration of which process they mean, or the lease in
 * them may have ended, it must also say that it still holds the request. What the answer replaces
 * is dropped only when no read uses it, and only if the answer differs: a false claim in a
 * request's parameters costs a question, not a working peer.
 */
final class RemoteEngines {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    private static final int MAX_MET = 4_096;

    private final KvTransport transport;
    private final ConnectorConfig config;
    private final Handshakes handshakes;
    private final ActiveReads reads;
    private final ReadOutcomes outcomes;
    private final StatisticsRecorder statistics;
    private final long patienceNanos;
    private final Map<Key, RemoteEngine> engines = new HashMap<>();
    private final PeerLoader loader;
    private final SpentHandOvers spent;
    private final List<Revocation> revocations = new ArrayList<>();
    private Subscription.@Nullable Reader self;

    /** Engines that were loaded some time, for the count of those that are loaded again. */
    private final Set<String> met = new HashSet<>();

    private boolean warnedOfMissingEpoch;

    /** Whoever says that an engine is elsewhere than others say speaks of another engine. */
    private record Key(String engineId, SideChannelAddress address) {}

    RemoteEngines(
            KvTransport transport,
            ConnectorConfig config,
            Handshakes handshakes,
            ActiveReads reads,
            ReadOutcomes outcomes,
            StatisticsRecorder statistics) {
        this.transport = transport;
        this.loader = new PeerLoader(transport);
        this.spent = new SpentHandOvers(config.holdLimit().toNanos());
        this.config = config;
        this.handshakes = handshakes;
        this.reads = reads;
        this.outcomes = outcomes;
        this.statistics = statistics;
        this.patienceNanos = config.handshakeTimeout().plus(config.readTimeout()).toNanos();
    }

    /**
     * Takes an order; it starts now or in a later {@link #progress}.
     *
     * @param arrivedNanos when its request came to this engine, on this rank's clock
     */
    void submit(ReadOrder order, long arrivedNanos, long nowNanos) {
        RemoteSource remote = order.remote();
        RemoteEngine engine = use(remote.engineId(), remote.host(), remote.port(), nowNanos);
        engine.waiting.add(new WaitingRead(order, nowNanos, arrivedNanos));
        guarded(engine, () -> advance(engine, nowNanos));
    }

    /**
     * Where this engine's side channel is, for peers that have to tell it something; 0 for none.
     */
    void reachableAt(int port) {
        self =
                port == 0
                        ? null
                        : new Subscription.Reader(
                                config.engineId(),
                                config.instanceId(),
                                new SideChannelAddress(config.advertisedHost(), port));
    }

    /**
     * Nothing is read any more through what the revocation names, also not through what is being
     * fetched. A false claim costs a handshake: the peer itself says what it still serves.
     */
    void revoke(Revocation revocation) {
        revocations.add(revocation);
        engines.values().stream()
                .filter(engine -> engine.engineId().equals(revocation.engineId()))
                .forEach(engine -> engine.revoke(revocation));
    }

    /** The revocations that are obeyed since the last call. */
    Set<String> takeRevoked() {
        Set<String> obeyed = new HashSet<>();
        for (Iterator<Revocation> each = revocations.iterator(); each.hasNext(); ) {
            Revocation revocation = each.next();
            if (engines.values().stream().noneMatch(engine -> engine.holds(revocation))) {
                each.remove();
                obeyed.add(revocation.id());
            }
        }
        return obeyed;
    }

    /** Renews leases at a loaded peer; a peer that is not loaded is asked, for the next time. */
    void renew(Heartbeat heartbeat, long nowNanos) {
        RemoteEngine engine =
                use(heartbeat.engineId(), heartbeat.host(), heartbeat.port(), nowNanos);
        guarded(engine, () -> renew(engine, heartbeat, nowNanos));
    }

    private void renew(RemoteEngine engine, Heartbeat heartbeat, long nowNanos) {
        LoadedEngine usable = engine.usable(heartbeat.tpSize());
        if (usable != null) {
            long leaseNanos = heartbeat.lease().toNanos();
            for (Notification.Renewal renewal : Notification.Renewal.of(heartbeat)) {
                if (send(engine, usable, renewal.encode(), nowNanos)) {
                    engine.renewals.sent(
                            renewal.requestIds(),
                            nowNanos,
                            ReadDeadline.extensionNanos(leaseNanos),
                            ReadDeadline.marginNanos(leaseNanos));
                }
            }
        } else if (engine.handshake == null
                && engine.fetched == null
                && !engine.mustBackOff(null, nowNanos)) {
            ask(engine, heartbeat.host(), heartbeat.port(), heartbeat.tpSize(), nowNanos);
        }
    }

    /** Drives handshakes and waiting reads. */
    void progress(List<LoadedEngine> suspects, long nowNanos) {
        for (LoadedEngine suspect : suspects) {
            engines.values().stream()
                    .filter(engine -> engine.loaded == suspect && !suspect.isConnected())
                    .forEach(engine -> engine.invalidate(nowNanos));
        }
        loader.retry();
        spent.forget(nowNanos);
        for (RemoteEngine engine : List.copyOf(engines.values())) {
            guarded(engine, () -> advance(engine, nowNanos));
        }
        for (Iterator<RemoteEngine> each = engines.values().iterator(); each.hasNext(); ) {
            RemoteEngine engine = each.next();
            engine.renewals.forget(nowNanos);
            if (engine.isIdle() && (engine.replaced || isExpired(engine, nowNanos))) {
                loader.drop(engine);
                each.remove();
            } else if (engine.isForgettable(nowNanos)) {
                each.remove();
            }
        }
    }

    /** True if no handshake runs and no read waits. */
    boolean isQuiet() {
        return engines.values().stream()
                .allMatch(
                        engine ->
                                engine.handshake == null
                                        && engine.fetched == null
                                        && engine.waiting.isEmpty());
    }

    /**
     * Drops every peer. No read may be in flight.
     *
     * @throws TransportException if the transport keeps one; it is tried again later
     */
    void dropAll() {
        engines.values().forEach(loader::drop);
        engines.clear();
        loader.requireAllDropped();
    }

    /** What is pending, for a message. */
    List<String> describe(long nowNanos) {
        List<String> pending = new ArrayList<>();
        engines.values().forEach(engine -> pending.addAll(engine.describe(nowNanos)));
        return pending;
    }

    /** What goes wrong with one peer, for whatever reason, is its own readers' failure alone. */
    private void guarded(RemoteEngine engine, Runnable action) {
        try {
            action.run();
        } catch (RuntimeException e) {
            LOG.log(
                    System.Logger.Level.ERROR,
                    "gave up reads from " + Excerpt.of(engine.engineId()),
                    e);
            engine.fetched = null;
            handshakeFailed(engine, List.copyOf(engine.waiting), "internal error: " + e);
        }
    }

    private void advance(RemoteEngine engine, long nowNanos) {
        settleHandshake(engine, nowNanos);
        LoadedEngine loaded = engine.loaded;
        if (loaded != null && !engine.waiting.isEmpty() && !loaded.isConnected()) {
            engine.invalidate(nowNanos);
        }
        if (loaded == null || loaded.readsInFlight() == 0) {
            if (engine.fetched != null) {
                replace(engine, engine.fetched);
            } else if (engine.isInvalid()) {
                loader.drop(engine);
            }
        }
        for (WaitingRead read : List.copyOf(engine.waiting)) {
            if (!engine.waiting.contains(read)) { // ended together with another
                continue;
            }
            if (nowNanos - read.orderedNanos() >= patienceNanos) {
                refuse(engine, read, "it waited for " + Duration.ofNanos(patienceNanos));
            } else if (engine.fetched == null) {
                judge(engine, read, nowNanos);
            }
        }
    }

    private void settleHandshake(RemoteEngine engine, long nowNanos) {
        Handshake handshake = engine.handshake;
        if (handshake == null) {
            return;
        }
        boolean answered = handshake.answer().isDone();
        if (!answered && nowNanos - handshake.deadlineNanos() < 0) {
            return;
        }
        engine.handshake = null;
        if (!answered) { // its thread is stuck, or waits for its turn
            handshakeFailed(
                    engine,
                    handshake.covered(),
                    "handshake with "
                            + handshake.address()
                            + ": no answer within "
                            + config.handshakeTimeout());
            return;
        }
        try {
            Handshake.Answer answer = handshake.answer().join();
            for (WaitingRead read : handshake.covered()) {
                read.markAsked(answer.holds().get(read.order().remote().requestId()));
            }
            FetchedEngine fetched = answer.engine();
            LoadedEngine usable = engine.usable();
            if (usable == null || !usable.isConnected() || !usable.confirm(fetched)) {
                engine.fetched = fetched;
            }
        } catch (CompletionException e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            handshakeFailed(engine, handshake.covered(), String.valueOf(cause.getMessage()));
        }
    }

    private void replace(RemoteEngine engine, FetchedEngine fetched) {
        LoadedEngine old = engine.loaded;
        if (old != null
                && old.address().equals(fetched.address())
                && !Objects.equals(old.identity().instanceId(), fetched.identity().instanceId())) {
            engine.retire(old.address(), old.identity().instanceId());
        }
        loader.drop(engine);
        engine.fetched = null;
        try {
            engine.setLoaded(loader.load(fetched, engines.values()));
            if (met.size() == MAX_MET) {
                met.clear();
            }
            statistics.handshake(!met.add(engine.engineId()));
            LOG.log(System.Logger.Level.INFO, "loaded: {0}", engine.loaded);
            for (RemoteEngine other : engines.values()) {
                LoadedEngine neighbour = other.loaded;
                if (other != engine
                        && neighbour != null
                        && neighbour.address().equals(fetched.address())) {
                    other.replaced = true;
                }
            }
        } catch (TransportException e) {
            List<WaitingRead> asked =
                    engine.waiting.stream().filter(WaitingRead::wasAsked).toList();
            handshakeFailed(engine, asked, "could not load: " + e.getMessage());
        }
    }

    private void judge(RemoteEngine engine, WaitingRead read, long nowNanos) {
        RemoteSource remote = read.order().remote();
        if (remote.ppSize() != 1) {
            handshakeFailed(
                    engine,
                    List.of(read),
                    "pipeline parallel sizes differ: here 1, at the peer " + remote.ppSize());
            return;
        }
        LoadedEngine usable = engine.usable(remote.tpSize());
        if (spent.contains(remote)) {
            refuse(engine, read, "these parameters were used before: the blocks may be gone");
            return;
        }
        if (read.isNotice() && usable != null && usable.identity().reaches(remote)) {
            engine.waiting.remove(read);
            spent.add(remote, nowNanos);
            Notification.Completion notNeeded =
                    new Notification.Completion(remote.requestId(), usable.mapping().consumers());
            send(engine, usable, notNeeded.encode(), nowNanos);
            outcomes.done(read.order());
            return;
        }
        switch (verdict(engine, usable, read)) {
            case READ -> startInTime(engine, Objects.requireNonNull(usable), read, nowNanos);
            case STALE -> {
                if (usable != null && !usable.identity().reaches(remote)) {
                    engine.retire(usable.address(), remote.instanceId());
                }
                refuse(
                        engine,
                        read,
                        "the blocks were handed over by instance "
                                + Excerpt.of(String.valueOf(remote.instanceId()))
                                + " in epoch "
                                + remote.epoch()
                                + ", but the peer is "
                                + (usable == null ? "gone" : usable));
            }
            case ASK -> askFor(engine, read, nowNanos);
        }
    }

    /** Starts the read if its blocks are held for sure; asks first if they may not be. */
    private void startInTime(
            RemoteEngine engine, LoadedEngine source, WaitingRead read, long nowNanos) {
        long deadlineNanos = ReadDeadline.of(read, source, engine.renewals, config, nowNanos);
        if (nowNanos - deadlineNanos < 0) {
            engine.waiting.remove(read);
            spent.add(read.order().remote(), nowNanos);
            reads.start(read.order(), source, nowNanos, deadlineNanos);
        } else if (source.identity().instanceId() != null && read.hold() == null) {
            read.doubt();
            askFor(engine, read, nowNanos);
        } else {
            statistics.expiredRequest();
            refuse(engine, read, "the peer may not hold the blocks any more: the lease is over");
        }
    }

    private void askFor(RemoteEngine engine, WaitingRead read, long nowNanos) {
        RemoteSource remote = read.order().remote();
        warnOnceOfMissingEpoch(remote);
        if (engine.handshake == null) {
            if (engine.mustBackOff(remote, nowNanos)) {
                refuse(engine, read, "the peer was lost just before; backing off");
            } else {
                ask(engine, remote.host(), remote.port(), remote.tpSize(), nowNanos);
            }
        }
    }

    private static RegistrationIdentity.Verdict verdict(
            RemoteEngine engine, @Nullable LoadedEngine usable, WaitingRead read) {
        RemoteSource remote = read.order().remote();
        SideChannelAddress address = new SideChannelAddress(remote.host(), remote.port());
        if (engine.isRetired(address, remote.instanceId())) {
            return RegistrationIdentity.Verdict.STALE;
        }
        if (usable == null) {
            return read.wasAsked()
                    ? RegistrationIdentity.Verdict.STALE
                    : RegistrationIdentity.Verdict.ASK;
        }
        return usable.identity()
                .judge(
                        remote,
                        read.wasAsked(),
                        HoldAnswer.isConfirmed(read.hold(), usable.identity()));
    }

    private void ask(RemoteEngine engine, String host, int port, int tpSize, long nowNanos) {
        SideChannelAddress address = new SideChannelAddress(host, port);
        try {
            engine.handshake =
                    handshakes.start(
                            engine.engineId(), address, tpSize, engine.waiting, self, nowNanos);
        } catch (ConnectorException | RejectedExecutionException e) {
            List<WaitingRead> waiting =
                    engine.waiting.stream().filter(read -> read.namesSize(tpSize)).toList();
            handshakeFailed(engine, waiting, String.valueOf(e.getMessage()));
        }
    }

    private void handshakeFailed(RemoteEngine engine, List<WaitingRead> covered, String reason) {
        statistics.failedHandshake();
        LOG.log(
                System.Logger.Level.WARNING,
                "handshake failed: {0}; remoteEngine={1} waiting={2}",
                reason,
                Excerpt.of(engine.engineId()),
                covered.size());
        for (WaitingRead read : covered) {
            if (engine.waiting.contains(read)) {
                end(engine, read, reason);
            }
        }
    }

    /** Ends a read that must not be made. */
    private void refuse(RemoteEngine engine, WaitingRead read, String reason) {
        if (!read.isNotice()) {
            statistics.failedTransfer();
        }
        end(engine, read, reason);
    }

    /** Ends a read that was not made; a notice that cannot be given fails nothing. */
    private void end(RemoteEngine engine, WaitingRead read, String reason) {
        engine.waiting.remove(read);
        if (read.isNotice()) {
            outcomes.done(read.order());
        } else {
            outcomes.failed(read.order(), reason);
        }
    }

    /** Sends to all loaded ranks; true if all took it. */
    private boolean send(RemoteEngine engine, LoadedEngine loaded, byte[] message, long nowNanos) {
        boolean sent = true;
        for (LoadedEngine.SourceRank rank : loaded.ranks()) {
            try {
                transport.notify(rank.peer(), message);
            } catch (TransportException | IllegalArgumentException e) {
                sent = false;
                statistics.failedNotification();
                LOG.log(
                        System.Logger.Level.DEBUG,
                        "message not sent: {0}; remoteEngine={1}",
                        e.getMessage(),
                        Excerpt.of(engine.engineId()));
                if (!loaded.isConnected()) {
                    engine.invalidate(nowNanos);
                }
            }
        }
        return sent;
    }

    private boolean isExpired(RemoteEngine engine, long nowNanos) {
        long ttlNanos = config.engineTtl().toNanos();
        return ttlNanos > 0 && nowNanos - engine.lastUsedNanos >= ttlNanos;
    }

    private RemoteEngine use(String engineId, String host, int port, long nowNanos) {
        RemoteEngine engine =
                engines.computeIfAbsent(
                        new Key(engineId, new SideChannelAddress(host, port)),
                        _ -> new RemoteEngine(engineId, nowNanos));
        engine.lastUsedNanos = nowNanos;
        return engine;
    }

    private void warnOnceOfMissingEpoch(RemoteSource remote) {
        if (!warnedOfMissingEpoch && remote.epoch() == 0) {
            warnedOfMissingEpoch = true;
            LOG.log(
                    System.Logger.Level.WARNING,
                    "kv_transfer_params without remote_registration_epoch: does a router drop it?"
                            + " Each such read asks the peer first; remoteEngine={0}",
                    Excerpt.of(remote.engineId()));
        }
    }
}
