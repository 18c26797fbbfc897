package dev.dormouse.simulation;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.router.routing.Json;
import dev.dormouse.router.routing.Outcome;
import dev.dormouse.router.routing.PrefillAnswer;
import dev.dormouse.router.routing.Role;
import dev.dormouse.router.routing.Routing;
import dev.dormouse.router.routing.Step;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Carries out what the product's router decides for one request, over messages that take time. What
 * engines say is told to it as their HTTP server does.
 */
final class Carrier {
    private static final int MAX_ANSWER_BYTES = 1 << 20;

    private final World world;
    private final Router router;
    private final Request request;
    private final Routing routing;
    private @Nullable Leg leg;
    private boolean clientGone;

    Carrier(World world, Router router, Request request, Routing routing) {
        this.world = world;
        this.router = router;
        this.request = request;
        this.routing = routing;
    }

    Request request() {
        return request;
    }

    void begin() {
        carryOut(routing.begin());
    }

    /** Begins with a hand-over that a prefill engine seems to have given. */
    void begin(JsonNode params) {
        var _ = routing.begin();
        var _ = routing.answered(200);
        carryOut(routing.prefilled(new PrefillAnswer.HandedOver(params)));
    }

    /** The client leaves. */
    void leave() {
        clientGone = true;
        giveUp(Outcome.CANCELLED);
    }

    /** The router waits no longer. */
    void timeOut() {
        giveUp(Outcome.TIMED_OUT);
    }

    private void giveUp(Outcome outcome) {
        Leg running = leg;
        if (running == null) {
            return;
        }
        world.log().add(running + " is given up: " + outcome);
        leg = null;
        if (running.process().isAlive()) {
            running.process().engine().abort(running.id());
        }
        carryOut(cutOff(running, outcome));
    }

    private void carryOut(Step step) {
        switch (step) {
            case Step.Ask ask -> {
                if (clientGone) {
                    carryOut(routing.failed(Outcome.CANCELLED, "the client left"));
                } else {
                    world.agenda().after(router.latency(), () -> deliver(ask));
                }
            }
            case Step.Finished finished ->
                    end(
                            finished.outcome() == Outcome.OK
                                    ? Request.End.ANSWERED
                                    : Request.End.REFUSED,
                            finished.outcome().label());
            case Step.Refuse refuse ->
                    end(Request.End.REFUSED, refuse.error().code() + refuse.error().message());
            case Step.EndStream end -> end(Request.End.REFUSED, end.error().code());
            case Step.BreakOff end -> end(Request.End.REFUSED, end.detail());
            case Step.ReadAnswer _, Step.PassOn _, Step.Explain _ ->
                    throw new Violation("no engine has answered yet: " + step);
        }
    }

    /** An engine that nobody reaches has seen nothing of the request. */
    private void deliver(Step.Ask ask) {
        Place place = router.place(ask.engine());
        EngineProcess process = place.process();
        if (clientGone) {
            carryOut(routing.failed(Outcome.CANCELLED, "the client left"));
        } else if (process == null) {
            carryOut(routing.failed(Outcome.UNREACHABLE, place + " could not be reached"));
        } else {
            submit(ask, process);
        }
    }

    private void submit(Step.Ask ask, EngineProcess process) {
        ObjectNode body = ask.body();
        if (body == null) {
            throw new Violation("a completion without a body");
        }
        int maxTokens = body.path("max_tokens").intValue();
        List<Integer> prompt = new ArrayList<>();
        body.path("prompt").forEach(token -> prompt.add(token.intValue()));
        JsonNode json = body.path("kv_transfer_params");
        KvTransferParams params = json.isMissingNode() ? null : KvTransferParams.of(json);
        if (params != null && params.remotePrefill()) {
            router.remember(request, params);
        }
        Leg begun =
                new Leg(
                        request.id(),
                        request.expected().subList(0, maxTokens),
                        process,
                        world::accuse,
                        (ended, outcome) -> ended(ask.engine().role(), ended, outcome));
        leg = begun;
        router.begun(begun);
        world.log().add(begun + " begins, prompt=" + prompt.size() + " max=" + maxTokens);
        process.engine()
                .submit(
                        new GenerationRequest(
                                request.id(), prompt, SamplingParameters.greedy(maxTokens), params),
                        begun);
    }

    private void ended(Role role, Leg ended, Leg.Outcome outcome) {
        router.ended(ended);
        world.log().add(ended + " ends: " + tell(outcome));
        world.agenda()
                .after(
                        router.latency(),
                        () -> {
                            requireReason(ended, outcome);
                            if (leg == ended) {
                                leg = null;
                                answered(role, ended, outcome);
                            }
                        });
    }

    /** No engine may fail a request by its own fault. */
    private void requireReason(Leg ended, Leg.Outcome outcome) {
        if (outcome instanceof Leg.Outcome.Failed(FailureKind kind, String message)
                && (kind == FailureKind.INVALID_REQUEST
                        || (kind == FailureKind.INTERNAL && !hasFailed(ended.process())))) {
            world.accuse(ended + " failed: " + kind + ", " + message);
        }
    }

    /** Whether an engine has failed in a transition, and says so or has been ended since. */
    private boolean hasFailed(EngineProcess process) {
        return process.state().phase() == Phase.FAILED || (world.hasFaults() && !process.isAlive());
    }

    private void answered(Role role, Leg ended, Leg.Outcome outcome) {
        switch (outcome) {
            case Leg.Outcome.Finished finished when role == Role.PREFILL -> {
                var _ = routing.answered(200);
                carryOut(
                        routing.prefilled(
                                PrefillAnswer.read(prefillBody(finished), MAX_ANSWER_BYTES)));
            }
            case Leg.Outcome.Finished(FinishReason reason, KvTransferParams params) -> {
                Step step = whole(routing.answered(200), "");
                if (reason == FinishReason.ABORT) {
                    end(Request.End.REFUSED, "aborted");
                } else {
                    carryOut(step);
                    router.answered(request, params);
                }
            }
            case Leg.Outcome.Failed failed when !isStreamed(ended) ->
                    carryOut(whole(routing.answered(status(failed.kind())), failed.message()));
            case Leg.Outcome.Failed _, Leg.Outcome.Lost _ ->
                    carryOut(cutOff(ended, Outcome.BROKEN));
        }
    }

    /** The client gets all that an engine answers. */
    private Step whole(Step step, String reason) {
        return switch (step) {
            case Step.PassOn passOn -> routing.passedOn(passOn.outcome());
            case Step.Explain explain ->
                    new Step.Refuse(explain.error(reason, null), Outcome.FAILED);
            case Step.Ask _,
                    Step.ReadAnswer _,
                    Step.Refuse _,
                    Step.EndStream _,
                    Step.BreakOff _,
                    Step.Finished _ ->
                    step;
        };
    }

    private Step cutOff(Leg cut, Outcome outcome) {
        if (!isStreamed(cut)) {
            return routing.failed(outcome, cut + " gave no answer");
        }
        var _ = routing.answered(200);
        return routing.brokeOff(outcome, cut + " gave no whole answer", true);
    }

    /** Whether tokens of a leg have gone to the client already. */
    private boolean isStreamed(Leg running) {
        return running.process().spec().role() == Role.DECODE
                && request.plan() == Request.Plan.STREAMED
                && running.tokens() > 0;
    }

    private byte[] prefillBody(Leg.Outcome.Finished finished) {
        ObjectNode body = Json.object();
        body.putArray("choices").addObject().put("finish_reason", finished.reason().wireName());
        KvTransferParams params = finished.params();
        if (params != null) {
            body.set("kv_transfer_params", router.onTheWay(params).toJson());
        }
        return Json.write(body);
    }

    private static int status(FailureKind kind) {
        return switch (kind) {
            case INVALID_REQUEST -> 400;
            case PAUSED, UNAVAILABLE -> 503;
            case KV_TRANSFER_FAILED -> 502;
            case INTERNAL -> 500;
        };
    }

    private void end(Request.End how, String why) {
        router.over(this);
        world.ended(request, how, why);
    }

    private static String tell(Leg.Outcome outcome) {
        return switch (outcome) {
            case Leg.Outcome.Finished finished ->
                    finished.reason() + (finished.params() == null ? "" : ", handed over");
            case Leg.Outcome.Failed failed -> failed.kind() + ", " + failed.message();
            case Leg.Outcome.Lost _ -> "connection lost";
        };
    }
}
