package dev.dormouse.simulation;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.SamplingParameters;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Serves each request by two legs as the product's router does: a prefill engine, others if it does
 * not take requests now, then a decode engine with the parameters that came back. Messages take
 * time; what becomes of the parameters on the way is for the faults to say.
 */
final class Router {
    private static final int REMEMBERED = 12;

    /** A hand-over that an engine was given, and may be given once more. */
    private record Used(Request request, KvTransferParams params) {}

    private final World world;
    private final Set<Request> open = new LinkedHashSet<>();
    private final Set<Leg> legs = new LinkedHashSet<>();
    private final Deque<Used> used = new ArrayDeque<>();
    private UnaryOperator<KvTransferParams> onTheWay = UnaryOperator.identity();
    private int turn;

    Router(World world) {
        this.world = world;
    }

    /** What becomes of parameters between the legs. */
    void onTheWay(UnaryOperator<KvTransferParams> change) {
        onTheWay = change;
    }

    /** Requests that have no end yet. */
    Set<Request> open() {
        return open;
    }

    /** Takes a request: by both legs, or by a decode engine alone. */
    void take(Request request, boolean detour) {
        open.add(request);
        if (detour) {
            decode(request, null, candidates(EngineSpec.Role.DECODE));
        } else {
            prefill(request, candidates(EngineSpec.Role.PREFILL));
        }
    }

    /** Takes a request through two engines that the caller chooses. */
    void take(Request request, Place prefill, Place decode) {
        open.add(request);
        prefill(request, queue(prefill), queue(decode));
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
        open.add(request);
        decode(request, old.params(), candidates(EngineSpec.Role.DECODE));
        return true;
    }

    /** A client leaves. */
    void abort(Request request) {
        Leg leg = request.leg();
        if (leg != null && leg.process().isAlive()) {
            world.log().add("the client of " + leg + " leaves");
            leg.process().engine().abort(leg.id());
        }
    }

    /** A process has ended. */
    void lost(EngineProcess process) {
        for (Leg leg : List.copyOf(legs)) {
            if (leg.process() == process) {
                leg.lost();
            }
        }
    }

    private void prefill(Request request, Deque<Place> candidates) {
        prefill(request, candidates, null);
    }

    private void prefill(
            Request request, Deque<Place> candidates, @Nullable Deque<Place> decoders) {
        Place place = candidates.poll();
        if (place == null) {
            end(request, Request.End.REFUSED, "no prefill engine takes it");
            return;
        }
        KvTransferParams ask =
                KvTransferParams.of(
                        JsonNodeFactory.instance
                                .objectNode()
                                .put("do_remote_decode", true)
                                .put("do_remote_prefill", false));
        send(
                request,
                place,
                1,
                ask,
                () -> prefill(request, candidates, decoders),
                outcome -> {
                    switch (outcome) {
                        case Leg.Outcome.Finished(FinishReason _, KvTransferParams params)
                                when params != null -> {
                            decode(
                                    request,
                                    onTheWay.apply(params),
                                    decoders == null
                                            ? candidates(EngineSpec.Role.DECODE)
                                            : decoders);
                        }
                        case Leg.Outcome.Finished(FinishReason reason, KvTransferParams _) -> {
                            if (reason == FinishReason.ABORT) {
                                place.readiness(Place.Readiness.UNREADY);
                                prefill(request, candidates, decoders);
                            } else {
                                decode(request, null, candidates(EngineSpec.Role.DECODE));
                            }
                        }
                        case Leg.Outcome.Failed failed -> {
                            if (failed.kind() == FailureKind.UNAVAILABLE) {
                                place.readiness(Place.Readiness.UNREADY);
                                prefill(request, candidates, decoders);
                            } else {
                                fail(request, failed);
                            }
                        }
                        case Leg.Outcome.Lost _ ->
                                end(request, Request.End.REFUSED, place + " broke the connection");
                    }
                });
    }

    private void decode(
            Request request, @Nullable KvTransferParams params, Deque<Place> candidates) {
        Place place = candidates.poll();
        if (place == null) {
            end(request, Request.End.REFUSED, "no decode engine can be reached");
            return;
        }
        send(
                request,
                place,
                request.expected().size(),
                params,
                () -> decode(request, params, candidates),
                outcome -> decoded(request, outcome));
    }

    private void decoded(Request request, Leg.Outcome outcome) {
        switch (outcome) {
            case Leg.Outcome.Finished finished ->
                    end(
                            request,
                            finished.reason() == FinishReason.ABORT
                                    ? Request.End.REFUSED
                                    : Request.End.ANSWERED,
                            "finished: " + finished.reason());
            case Leg.Outcome.Failed failed -> fail(request, failed);
            case Leg.Outcome.Lost _ -> end(request, Request.End.REFUSED, "connection lost");
        }
    }

    /**
     * Sends a leg; an engine that nobody reaches has seen nothing of it, so the next one is asked.
     */
    private void send(
            Request request,
            Place place,
            int maxTokens,
            @Nullable KvTransferParams params,
            Runnable unreachable,
            Consumer<Leg.Outcome> then) {
        world.agenda()
                .after(
                        latency(),
                        () -> {
                            EngineProcess process = place.process();
                            if (process == null) {
                                place.readiness(Place.Readiness.DOWN);
                                unreachable.run();
                                return;
                            }
                            submit(request, process, maxTokens, params, then);
                        });
    }

    private void submit(
            Request request,
            EngineProcess process,
            int maxTokens,
            @Nullable KvTransferParams params,
            Consumer<Leg.Outcome> then) {
        List<Leg> self = new ArrayList<>();
        Leg leg =
                new Leg(
                        request.id(),
                        request.expected().subList(0, maxTokens),
                        process,
                        world::accuse,
                        outcome -> {
                            legs.removeAll(self);
                            world.log().add(self.getFirst() + " ends: " + tell(outcome));
                            world.agenda().after(latency(), () -> then.accept(outcome));
                        });
        self.add(leg);
        legs.add(leg);
        request.begin(leg);
        if (params != null && params.remotePrefill()) {
            remember(new Used(request, params));
        }
        world.log().add(leg + " begins, prompt=" + request.prompt().size() + " max=" + maxTokens);
        process.engine()
                .submit(
                        new GenerationRequest(
                                request.id(),
                                request.prompt(),
                                SamplingParameters.greedy(maxTokens),
                                params),
                        leg);
    }

    private void fail(Request request, Leg.Outcome.Failed failed) {
        if (failed.kind() == FailureKind.INVALID_REQUEST
                || (failed.kind() == FailureKind.INTERNAL && !hasFailed(request.leg()))) {
            world.accuse(request.leg() + " failed: " + failed);
        }
        end(request, Request.End.REFUSED, "failed: " + failed.kind());
    }

    /** Whether its engine has failed in a transition, and says so or has been ended since. */
    private boolean hasFailed(@Nullable Leg leg) {
        return leg != null
                && (leg.process().state().phase() == Phase.FAILED
                        || (world.hasFaults() && !leg.process().isAlive()));
    }

    private void end(Request request, Request.End how, String why) {
        open.remove(request);
        request.finish();
        world.ended(request, how, why);
    }

    private void remember(Used handOver) {
        used.addLast(handOver);
        if (used.size() > REMEMBERED) {
            used.removeFirst();
        }
    }

    /** In the order of the product's router: those that are ready by turns, then sleepers. */
    private Deque<Place> candidates(EngineSpec.Role role) {
        List<Place> places = new ArrayList<>(world.places(role));
        Collections.rotate(places, -Math.floorMod(turn++, places.size()));
        places.sort(Comparator.comparing(Place::readiness));
        return new ArrayDeque<>(places);
    }

    private static Deque<Place> queue(Place place) {
        return new ArrayDeque<>(List.of(place));
    }

    private static String tell(Leg.Outcome outcome) {
        return switch (outcome) {
            case Leg.Outcome.Finished finished ->
                    finished.reason() + (finished.params() == null ? "" : ", handed over");
            case Leg.Outcome.Failed failed -> failed.kind() + ", " + failed.message();
            case Leg.Outcome.Lost _ -> "connection lost";
        };
    }

    private Duration latency() {
        return Duration.ofNanos(world.random().nextInt(3_000_000));
    }
}
