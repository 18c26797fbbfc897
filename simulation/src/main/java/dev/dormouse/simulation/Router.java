package dev.dormouse.simulation;

import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.router.routing.CompletionRequest;
import dev.dormouse.router.routing.Engine;
import dev.dormouse.router.routing.EnginePool;
import dev.dormouse.router.routing.Role;
import dev.dormouse.router.routing.Routing;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * The requests on their way. What becomes of each is decided by the product's {@link Routing}; here
 * is only what surrounds it: delays, what happens to parameters on the way, and old hand-overs that
 * come once more.
 */
final class Router {
    private static final int REMEMBERED = 12;

    /** A hand-over that an engine was given, and may be given once more. */
    private record Used(Request request, KvTransferParams params) {}

    private final World world;
    private final EnginePool prefill;
    private final EnginePool decode;
    private final Map<Engine, Place> places = new HashMap<>();
    private final Set<Carrier> open = new LinkedHashSet<>();
    private final Set<Leg> legs = new LinkedHashSet<>();
    private final Deque<Used> used = new ArrayDeque<>();
    private UnaryOperator<KvTransferParams> onTheWay = UnaryOperator.identity();
    private BiConsumer<Request, @Nullable KvTransferParams> onAnswer = (_, _) -> {};

    Router(World world) {
        this.world = world;
        this.prefill = pool(world.places(Role.PREFILL));
        this.decode = pool(world.places(Role.DECODE));
        world.places().forEach(place -> places.put(place.routed(), place));
    }

    /** What becomes of parameters between engines and clients. */
    void onTheWay(UnaryOperator<KvTransferParams> change) {
        onTheWay = change;
    }

    KvTransferParams onTheWay(KvTransferParams params) {
        return onTheWay.apply(params);
    }

    /** Who takes answered requests, with what came for the next turn. */
    void onAnswer(BiConsumer<Request, @Nullable KvTransferParams> taker) {
        onAnswer = taker;
    }

    /** Requests that have no end yet. */
    Set<Carrier> open() {
        return open;
    }

    /** Takes a request. */
    void take(Request request) {
        begin(request, prefill, decode).begin();
    }

    /** Takes a request through two engines that the caller chooses. */
    void take(Request request, Place prefiller, Place decoder) {
        begin(request, pool(List.of(prefiller)), pool(List.of(decoder))).begin();
    }

    /**
     * Sends an old hand-over to a decode engine once more; false if there is none.
     *
     * @param again makes the request that comes with it
     * @param choice which one
     */
    boolean repeat(Function<Request, Request> again, int choice) {
        if (used.isEmpty()) {
            return false;
        }
        Used old = List.copyOf(used).get(Math.floorMod(choice, used.size()));
        Request request = again.apply(old.request());
        world.log().add(request.id() + " repeats the hand-over of " + old.request().id());
        begin(request, prefill, decode).begin(old.params().toJson());
        return true;
    }

    private Carrier begin(Request request, EnginePool prefillers, EnginePool decoders) {
        Routing routing;
        try {
            routing =
                    Routing.ofCompletion(
                            CompletionRequest.parse(request.body(), true), prefillers, decoders);
        } catch (IOException e) {
            throw new Violation(request.id() + " is no JSON for the router", e);
        }
        Carrier carrier = new Carrier(world, this, request, routing);
        open.add(carrier);
        return carrier;
    }

    /** A process has ended. */
    void lost(EngineProcess process) {
        for (Leg leg : List.copyOf(legs)) {
            if (leg.process() == process) {
                leg.lost();
            }
        }
    }

    Place place(Engine engine) {
        Place place = places.get(engine);
        if (place == null) {
            throw new Violation("nobody knows the engine " + engine.name());
        }
        return place;
    }

    void begun(Leg leg) {
        legs.add(leg);
    }

    void ended(Leg leg) {
        legs.remove(leg);
    }

    void over(Carrier carrier) {
        if (!open.remove(carrier)) {
            throw new Violation(carrier.request().id() + " ends twice");
        }
    }

    void answered(Request request, @Nullable KvTransferParams params) {
        onAnswer.accept(request, params);
    }

    void remember(Request request, KvTransferParams params) {
        used.addLast(new Used(request, params));
        if (used.size() > REMEMBERED) {
            used.removeFirst();
        }
    }

    Duration latency() {
        return Duration.ofNanos(world.random().nextInt(3_000_000));
    }

    private static EnginePool pool(List<Place> places) {
        return new EnginePool(places.stream().map(Place::routed).toList());
    }
}
