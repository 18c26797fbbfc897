package dev.dormouse.connector;

import dev.dormouse.transport.TransportException;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/** Has peers asked on behalf of one rank, and loads what they answer. */
final class PeerAsker {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    private static final int MAX_MET = 4_096;

    private final ConnectorConfig config;
    private final Handshakes handshakes;
    private final PeerLoader loader;
    private final OrderEnds ends;
    private final StatisticsRecorder statistics;
    private Subscription.@Nullable Reader self;

    /** Engines that were loaded some time, for the count of those that are loaded again. */
    private final Set<String> met = new HashSet<>();

    PeerAsker(
            ConnectorConfig config,
            Handshakes handshakes,
            PeerLoader loader,
            OrderEnds ends,
            StatisticsRecorder statistics) {
        this.config = config;
        this.handshakes = handshakes;
        this.loader = loader;
        this.ends = ends;
        this.statistics = statistics;
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
     * Has a peer asked, on behalf of all orders that wait for it.
     *
     * @param epoch a registration epoch that a request named, 0 for none
     */
    void ask(RemoteEngine engine, String host, int port, int tpSize, long epoch, long nowNanos) {
        SideChannelAddress address = new SideChannelAddress(host, port);
        try {
            engine.handshake =
                    handshakes.start(
                            engine.engineId(),
                            address,
                            tpSize,
                            epoch,
                            engine.waiting,
                            self,
                            nowNanos);
        } catch (ConnectorException | RejectedExecutionException e) {
            failWaiting(engine, tpSize, e);
        }
    }

    /** Has an order claimed in the conversation that is under way, if it came early enough. */
    void join(Handshake handshake, WaitingOrder order) {
        if (order.needsClaim()) {
            handshake.join(order, HoldQuestion.of(order.order(), config.instanceId()));
        }
    }

    /** Claims, at a peer of our own kind that is loaded, what waits to be read from it. */
    void claim(RemoteEngine engine, WaitingOrder order, long nowNanos) {
        LoadedEngine source = engine.usable();
        if (engine.handshake != null) {
            join(engine.handshake, order);
            return;
        }
        if (source == null) {
            return;
        }
        int size = source.mapping().remoteSize();
        try {
            engine.handshake = handshakes.claim(source.address(), size, engine.waiting, nowNanos);
        } catch (RejectedExecutionException e) {
            failWaiting(engine, size, e);
        }
    }

    /** Asks this product's own questions; they are answered in order, or not at all. */
    CompletableFuture<List<byte[]>> ask(
            SideChannelAddress address, List<byte[]> questions, long nowNanos) {
        try {
            return handshakes.ask(address, questions, nowNanos);
        } catch (RejectedExecutionException e) {
            return CompletableFuture.failedFuture(e);
        }
    }

    private void failWaiting(RemoteEngine engine, int tpSize, RuntimeException cause) {
        List<WaitingOrder> waiting =
                engine.waiting.stream().filter(order -> order.namesSize(tpSize)).toList();
        ends.handshakeFailed(engine, waiting, String.valueOf(cause.getMessage()));
    }

    /** Has a peer asked that nobody waits for yet, unless it is being asked or was just lost. */
    void askAhead(
            RemoteEngine engine, String host, int port, int tpSize, long epoch, long nowNanos) {
        if (engine.handshake == null
                && engine.fetched == null
                && !engine.mustBackOff(null, nowNanos)) {
            ask(engine, host, port, tpSize, epoch, nowNanos);
        }
    }

    /** Takes the answer of a handshake, if there is one. */
    void settle(RemoteEngine engine, long nowNanos) {
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
            ends.handshakeFailed(
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
            FetchedEngine fetched = answer.engine();
            handshake.covered().forEach(order -> markClaimed(order, answer));
            handshake.joined().forEach(order -> markClaimed(order, answer));
            if (fetched != null) { // its payloads may be older than those that joined
                handshake.covered().forEach(WaitingOrder::markAsked);
            }
            if (fetched == null) {
                return;
            }
            LoadedEngine usable = engine.usable();
            if (usable == null || !usable.isConnected() || !usable.confirm(fetched)) {
                engine.fetched = fetched;
            }
        } catch (CompletionException e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            ends.handshakeFailed(engine, handshake.covered(), String.valueOf(cause.getMessage()));
        }
    }

    private void markClaimed(WaitingOrder order, Handshake.Answer answer) {
        HoldAnswer hold = answer.holds().get(HoldQuestion.of(order.order(), config.instanceId()));
        if (hold != null) {
            order.markClaimed(hold);
        }
    }

    /**
     * Loads what a peer answered, in place of what was loaded of it.
     *
     * @param all the engines that are known
     */
    void replace(RemoteEngine engine, FetchedEngine fetched, Collection<RemoteEngine> all) {
        LoadedEngine old = engine.loaded;
        if (old != null
                && old.address().equals(fetched.address())
                && !Objects.equals(old.identity().instanceId(), fetched.identity().instanceId())) {
            engine.retire(old.address(), old.identity().instanceId());
        }
        loader.drop(engine);
        engine.fetched = null;
        try {
            LoadedEngine loaded = loader.load(fetched, all);
            engine.setLoaded(loaded);
            if (met.size() == MAX_MET) {
                met.clear();
            }
            statistics.handshake(!met.add(engine.engineId()));
            LOG.log(
                    System.Logger.Level.INFO,
                    "loaded: {0} over={1}",
                    loaded,
                    loaded.routes().stream().distinct().toList());
            for (RemoteEngine other : all) {
                LoadedEngine neighbour = other.loaded;
                if (other != engine
                        && neighbour != null
                        && neighbour.address().equals(fetched.address())) {
                    other.replaced = true;
                }
            }
        } catch (TransportException e) {
            List<WaitingOrder> asked =
                    engine.waiting.stream().filter(WaitingOrder::wasAsked).toList();
            ends.handshakeFailed(engine, asked, "could not load: " + e.getMessage());
        }
    }
}
