package dev.dormouse.router.routing;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * One request's way: a prefill engine computes the prompt's KV, a decode engine reads it and
 * answers. Each call tells what has happened to the last step and returns the next one. Used by one
 * thread.
 *
 * <p>Another engine is asked only where the one before holds nothing of the request: to which no
 * connection came up, and a prefill engine that does not take requests now.
 */
public final class Routing {
    private static final Engine.Health UNREADY =
            new Engine.Health(Engine.Readiness.UNREADY, "not ready: refused a request");
    private static final Engine.Health UNREACHABLE =
            new Engine.Health(Engine.Readiness.DOWN, "unreachable");

    private final @Nullable CompletionRequest completion;
    private final EnginePool decode;
    private Leg leg;
    private boolean answered;

    /** What is sent to engines of one role, and to which; the first is the one that is asked. */
    private static final class Leg {
        private final Iterator<Engine> candidates;
        private final @Nullable ObjectNode body;
        private final @Nullable HandOver handOver;
        private Engine engine;
        private boolean repeated;

        private Leg(EnginePool pool, @Nullable ObjectNode body, @Nullable HandOver handOver) {
            this.candidates = pool.candidates().iterator();
            this.body = body;
            this.handOver = handOver;
            this.engine = candidates.next();
        }

        private Step.Ask ask() {
            return new Step.Ask(engine, body, handOver);
        }

        private Role role() {
            return engine.role();
        }
    }

    private Routing(@Nullable CompletionRequest completion, EnginePool decode, Leg first) {
        this.completion = completion;
        this.decode = decode;
        this.leg = first;
    }

    /** A completion: by both legs, or by a decode engine alone where it needs a detour. */
    public static Routing ofCompletion(
            CompletionRequest completion, EnginePool prefill, EnginePool decode) {
        return new Routing(
                completion,
                decode,
                completion.detour().isPresent()
                        ? new Leg(decode, completion.plainBody(), HandOver.BYPASSED)
                        : new Leg(prefill, completion.prefillBody(), null));
    }

    /** A request without body that any decode engine answers. */
    public static Routing ofQuestion(EnginePool decode) {
        return new Routing(null, decode, new Leg(decode, null, null));
    }

    /** The first step. */
    public Step begin() {
        return leg.ask();
    }

    /** The engine has answered with a status; its body is still to come. */
    public Step answered(int status) {
        answered = true;
        Outcome outcome = Outcome.ofStatus(status);
        if (leg.role() == Role.PREFILL && outcome == Outcome.OK) {
            return new Step.ReadAnswer();
        }
        Step failure =
                outcome == Outcome.FAILED
                        ? new Step.Explain(leg.role(), status)
                        : new Step.PassOn(leg.role(), outcome);
        return leg.role() == Role.PREFILL && status == 503 ? askNext(UNREADY, failure) : failure;
    }

    /** The prefill engine has succeeded. */
    public Step prefilled(PrefillAnswer answer) {
        CompletionRequest request = Objects.requireNonNull(completion);
        return switch (answer) {
            case PrefillAnswer.HandedOver handedOver ->
                    decode(request.decodeBody(handedOver.params()), HandOver.YES);
            case PrefillAnswer.NothingHandedOver _ -> decode(request.plainBody(), HandOver.NO);
            case PrefillAnswer.Aborted _ ->
                    askNext(UNREADY, new Step.Refuse(ApiError.aborted(leg.role()), Outcome.FAILED));
            case PrefillAnswer.Unusable _ ->
                    failed(
                            Outcome.BROKEN,
                            "prefill engine answered with something that is not JSON");
        };
    }

    /** The client has all of the engine's answer. */
    public Step passedOn(Outcome outcome) {
        return new Step.Finished(outcome);
    }

    /**
     * The engine has given no usable answer, or the client is gone; nothing has gone to the client.
     *
     * @param outcome one of those that are no answer
     * @param detail for the client; names no address
     */
    public Step failed(Outcome outcome, String detail) {
        if (outcome == Outcome.CANCELLED) {
            return new Step.BreakOff(outcome, detail);
        }
        if (outcome == Outcome.BROKEN && mayBeRepeated()) {
            leg.repeated = true;
            return leg.ask();
        }
        Step refusal = new Step.Refuse(ApiError.of(leg.role(), outcome, detail), outcome);
        // A prompt that may have killed an engine is given to no other one.
        return outcome == Outcome.UNREACHABLE && !answered && !leg.repeated
                ? askNext(UNREACHABLE, refusal)
                : refusal;
    }

    /**
     * The answer ended too early, and a part of it has gone to the client.
     *
     * @param outcome one of those that are no answer
     * @param detail for the client; names no address
     * @param wholeEvents whether what the client has is an event stream with no event cut in half
     */
    public Step brokeOff(Outcome outcome, String detail, boolean wholeEvents) {
        return outcome == Outcome.CANCELLED || !wholeEvents
                ? new Step.BreakOff(outcome, detail)
                : new Step.EndStream(ApiError.of(leg.role(), outcome, detail), outcome);
    }

    /**
     * A connection that ends before a byte of the answer may have been closed as an idle one while
     * the request was on its way. A prompt that is computed twice for it costs time only: nobody
     * reads the first one. A decode engine might read a prompt, which can be read once.
     */
    private boolean mayBeRepeated() {
        return leg.role() == Role.PREFILL && !answered && !leg.repeated;
    }

    private Step decode(ObjectNode body, HandOver handOver) {
        leg = new Leg(decode, body, handOver);
        answered = false;
        return leg.ask();
    }

    /** Asks the next engine, since this one holds nothing of the request. */
    private Step askNext(Engine.Health health, Step otherwise) {
        leg.engine.health(health);
        if (!leg.candidates.hasNext()) {
            return otherwise;
        }
        leg.engine = leg.candidates.next();
        answered = false;
        return leg.ask();
    }
}
