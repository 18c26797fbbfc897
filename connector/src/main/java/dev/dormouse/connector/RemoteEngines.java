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
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * The peers of one rank: has them asked and loaded for the orders that wait for them, which then go
 * on by {@link OrderRules}.
 *
 * <p>A peer is asked, at most once at a time, when it is not loaded, when a request names a newer
 * registration or other ranks than the loaded ones, and when one does not tell which it means.
 * Where a reader needs it, a peer of our own kind must also say of a request that it holds it for
 * this engine and no other. What the answer replaces is dropped only when no transfer uses it, and
 * only if the answer differs: a false claim in a request's parameters costs a question, not a
 * working peer.
 */
final class RemoteEngines {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    private final ConnectorConfig config;
    private final PeerAsker asker;
    private final OrderEnds ends;
    private final OrderRules rules;
    private final PeerMessenger messenger;
    private final long patienceNanos;
    private final Map<Key, RemoteEngine> engines = new HashMap<>();
    private final PeerLoader loader;
    private final List<Revocation> revocations = new ArrayList<>();
    private boolean warnedOfMissingEpoch;

    /** Whoever says that an engine is elsewhere than others say speaks of another engine. */
    private record Key(String engineId, SideChannelAddress address) {
        static Key of(RemoteSource peer) {
            return new Key(peer.engineId(), new SideChannelAddress(peer.host(), peer.port()));
        }
    }

    RemoteEngines(
            KvTransport transport,
            ConnectorConfig config,
            Handshakes handshakes,
            OrderRules rules,
            PeerMessenger messenger,
            StatisticsRecorder statistics) {
        this.loader = new PeerLoader(transport, statistics);
        this.config = config;
        this.rules = rules;
        this.messenger = messenger;
        this.ends = new OrderEnds(rules, statistics, new TransferFailureLog(config.engineId()));
        this.asker = new PeerAsker(config, handshakes, loader, ends, statistics);
        this.patienceNanos = config.handshakeTimeout().plus(config.readTimeout()).toNanos();
    }

    /**
     * Takes an order; it starts now or in a later {@link #progress}.
     *
     * @param arrivedNanos when its request came to this engine, on this rank's clock
     */
    void submit(PeerOrder order, long arrivedNanos, long nowNanos) {
        RemoteSource remote = order.remote();
        RemoteEngine engine = use(remote.engineId(), remote.host(), remote.port(), nowNanos);
        engine.waiting.add(new WaitingOrder(order, nowNanos, arrivedNanos));
        guarded(engine, () -> advance(engine, nowNanos));
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

    /** Where this engine's side channel is; see {@link PeerAsker#reachableAt}. */
    void reachableAt(int port) {
        asker.reachableAt(port);
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
                if (messenger.sendToAll(engine, usable, renewal.encode(), nowNanos)) {
                    engine.renewals.sent(
                            renewal.requestIds(),
                            nowNanos,
                            ReadDeadline.extensionNanos(leaseNanos),
                            ReadDeadline.marginNanos(leaseNanos));
                }
            }
        } else {
            asker.askAhead(
                    engine,
                    heartbeat.host(),
                    heartbeat.port(),
                    heartbeat.tpSize(),
                    heartbeat.epoch(),
                    nowNanos);
        }
    }

    /**
     * Asks a side channel this product's own questions; they are answered in order, or not at all.
     */
    CompletableFuture<List<byte[]>> ask(
            SideChannelAddress address, List<byte[]> questions, long nowNanos) {
        return asker.ask(address, questions, nowNanos);
    }

    /**
     * Tells a peer of our own kind something, if it is loaded; an engine of vLLM's, which may have
     * taken its place, would end at such messages. Whether all its ranks took it.
     */
    boolean tellLoaded(RemoteSource peer, byte[] message, long nowNanos) {
        RemoteEngine engine = engines.get(Key.of(peer));
        LoadedEngine usable = engine == null ? null : engine.usable(peer.tpSize());
        return engine != null
                && usable != null
                && usable.identity().instanceId() != null
                && usable.identity().reaches(peer)
                && messenger.sendToAll(engine, usable, message, nowNanos);
    }

    /** Has a peer asked that will be needed, unless it is loaded. */
    void expect(RemoteSource peer, long nowNanos) {
        RemoteEngine engine = use(peer.engineId(), peer.host(), peer.port(), nowNanos);
        LoadedEngine usable = engine.usable(peer.tpSize());
        if (usable == null || !usable.identity().reaches(peer)) {
            asker.askAhead(engine, peer.host(), peer.port(), peer.tpSize(), peer.epoch(), nowNanos);
        }
    }

    /** Which registration of a peer is loaded, or null. */
    @Nullable RegistrationIdentity identity(RemoteSource peer) {
        RemoteEngine engine = engines.get(Key.of(peer));
        LoadedEngine usable = engine == null ? null : engine.usable();
        return usable == null ? null : usable.identity();
    }

    /** Ends the orders of a request that have not begun. */
    void withdraw(String requestId, String reason) {
        for (RemoteEngine engine : engines.values()) {
            for (WaitingOrder waiting : List.copyOf(engine.waiting)) {
                if (waiting.order().requestId().equals(requestId)) {
                    ends.withdraw(engine, waiting, reason);
                }
            }
        }
    }

    /** Drives handshakes and waiting orders. */
    void progress(List<LoadedEngine> suspects, long nowNanos) {
        for (LoadedEngine suspect : suspects) {
            engines.values().stream()
                    .filter(engine -> engine.loaded == suspect && !suspect.isConnected())
                    .forEach(engine -> engine.invalidate(nowNanos));
        }
        loader.retry();
        rules.forget(nowNanos);
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
            ends.handshakeFailed(engine, List.copyOf(engine.waiting), "internal error: " + e);
        }
    }

    private void advance(RemoteEngine engine, long nowNanos) {
        asker.settle(engine, nowNanos);
        LoadedEngine loaded = engine.loaded;
        if (loaded != null && !loaded.isConnected()) {
            if (engine.waiting.isEmpty()) {
                engine.giveUp();
            } else {
                engine.invalidate(nowNanos);
            }
        }
        if (loaded == null || loaded.transfersInFlight() == 0) {
            if (engine.fetched != null) {
                asker.replace(engine, engine.fetched, engines.values());
            } else if (engine.isInvalid()) {
                loader.drop(engine);
            }
        }
        for (WaitingOrder read : List.copyOf(engine.waiting)) {
            if (!engine.waiting.contains(read)) { // ended together with another
                continue;
            }
            if (nowNanos - read.orderedNanos() >= patienceNanos) {
                String waited = "it waited for " + Duration.ofNanos(patienceNanos);
                ends.refuse(engine, read, new OrderRules.Next.Refuse(waited));
            } else if (engine.fetched == null) {
                judge(engine, read, nowNanos);
            }
        }
    }

    private void judge(RemoteEngine engine, WaitingOrder read, long nowNanos) {
        RemoteSource remote = read.order().remote();
        if (remote.ppSize() != 1) {
            ends.handshakeFailed(
                    engine,
                    List.of(read),
                    "pipeline parallel sizes differ: here 1, at the peer " + remote.ppSize());
            return;
        }
        switch (rules.next(read, engine, nowNanos)) {
            case OrderRules.Next.Begun _ -> engine.waiting.remove(read);
            case OrderRules.Next.Ask _ -> askFor(engine, read, nowNanos);
            case OrderRules.Next.Claim _ -> asker.claim(engine, read, nowNanos);
            case OrderRules.Next.Wait _ -> {}
            case OrderRules.Next.Refuse refusal -> ends.refuse(engine, read, refusal);
        }
    }

    private void askFor(RemoteEngine engine, WaitingOrder read, long nowNanos) {
        RemoteSource remote = read.order().remote();
        warnOnceOfMissingEpoch(remote);
        if (engine.handshake != null) {
            asker.join(engine.handshake, read);
        } else if (engine.mustBackOff(remote, nowNanos)) {
            ends.refuse(
                    engine,
                    read,
                    new OrderRules.Next.Refuse("the peer was lost just before; backing off"));
        } else {
            asker.ask(
                    engine,
                    remote.host(),
                    remote.port(),
                    remote.tpSize(),
                    remote.epoch(),
                    nowNanos);
        }
    }

    private boolean isExpired(RemoteEngine engine, long nowNanos) {
        long ttlNanos = config.engineTtl().toNanos();
        return ttlNanos > 0 && nowNanos - engine.lastUsedNanos >= ttlNanos;
    }

    private RemoteEngine use(String engineId, String host, int port, long nowNanos) {
        SideChannelAddress address = new SideChannelAddress(host, port);
        RemoteEngine engine =
                engines.computeIfAbsent(
                        new Key(engineId, address),
                        _ -> new RemoteEngine(engineId, address, nowNanos));
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
