package dev.dormouse.router;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Iterator;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Serves a completion by two legs: a prefill engine computes the prompt's KV, a decode engine reads
 * it and answers. Thread-safe; a request runs on its caller's thread.
 */
final class CompletionHandler {
    /** Tells the client how its prompt got to the decode engine. */
    static final String HAND_OVER = "x-dormouse-hand-over";

    private static final Engine.Health UNREADY =
            new Engine.Health(Engine.Readiness.UNREADY, "not ready: refused a request");

    private static final Logger LOGGER = System.getLogger("dormouse.router");

    private final Leg prefill;
    private final Leg decode;
    private final ResponseRelay relay;
    private final RouterMetrics metrics;
    private final int maxAnswerBytes;

    /** {@code maxAnswerBytes} bounds a prefill engine's answer. */
    CompletionHandler(
            Leg prefill,
            Leg decode,
            ResponseRelay relay,
            RouterMetrics metrics,
            int maxAnswerBytes) {
        this.prefill = prefill;
        this.decode = decode;
        this.relay = relay;
        this.metrics = metrics;
        this.maxAnswerBytes = maxAnswerBytes;
    }

    /** What the prefill leg came to. */
    private sealed interface Prefilled {
        /** The engine holds the prompt's KV; {@code params} tell the decode engine where. */
        record HandedOver(JsonNode params) implements Prefilled {}

        /** The engine succeeded and holds nothing. */
        record NotHandedOver() implements Prefilled {}

        /** The engine ended the request by itself, as it does when it pauses or falls asleep. */
        record Aborted() implements Prefilled {}

        /** The client has its answer already. */
        record Ended(Outcome outcome) implements Prefilled {}
    }

    /**
     * Answers the request.
     *
     * @throws AbruptEnd if the client left, or has half an answer that cannot be completed
     */
    Outcome handle(CompletionRequest request, Exchange exchange) {
        Optional<Detour> detour = request.detour();
        if (detour.isPresent()) {
            metrics.prefillBypassed(detour.get());
            return decode(request.plainBody(), "bypassed", exchange);
        }
        return switch (prefill(request, exchange)) {
            case Prefilled.HandedOver(JsonNode params) ->
                    decode(request.decodeBody(params), "yes", exchange);
            case Prefilled.NotHandedOver() -> decode(request.plainBody(), "no", exchange);
            case Prefilled.Aborted() -> {
                ApiError.aborted(Role.PREFILL).send(exchange.response());
                yield Outcome.FAILED;
            }
            case Prefilled.Ended(Outcome outcome) -> outcome;
        };
    }

    /**
     * Asks one prefill engine after the other, as long as they say that they do not take requests
     * now: those hold nothing for it.
     */
    private Prefilled prefill(CompletionRequest request, Exchange exchange) {
        byte[] body = request.prefillBody();
        Iterator<Engine> candidates = prefill.candidates();
        while (true) {
            try (Leg.Answer answer =
                    prefill.open(
                            candidates,
                            engine ->
                                    exchange.postTo(engine, body)
                                            .setHeader("accept", "application/json")
                                            .build(),
                            exchange.endpoint(),
                            exchange.client())) {
                @Nullable Prefilled result =
                        Outcome.ofStatus(answer.status()) == Outcome.OK
                                ? readHandOver(answer.call())
                                : null;
                boolean unready = answer.status() == 503 || result instanceof Prefilled.Aborted;
                if (unready) {
                    answer.call().engine().health(UNREADY);
                }
                if (unready && candidates.hasNext()) {
                    answer.call().settle(Outcome.FAILED);
                } else if (result != null) {
                    return result;
                } else {
                    return new Prefilled.Ended(
                            relay.relay(
                                    prefill, answer.call(), answer.head(), exchange.response()));
                }
            } catch (UpstreamFailure e) {
                return new Prefilled.Ended(sendFailure(Role.PREFILL, e, exchange));
            }
        }
    }

    private Prefilled readHandOver(UpstreamCall call) throws UpstreamFailure {
        byte[] bytes = call.readUpTo(maxAnswerBytes + 1, prefill.timeout());
        JsonNode answer;
        try {
            if (bytes.length > maxAnswerBytes) {
                throw new IOException("answer longer than " + maxAnswerBytes + " bytes");
            }
            answer = Json.read(bytes);
        } catch (IOException e) {
            call.settle(Outcome.BROKEN);
            LOGGER.log(
                    Level.WARNING,
                    "prefill answer unusable: engine={0} cause={1}",
                    call.engine().name(),
                    e.getMessage());
            throw new UpstreamFailure(
                    Outcome.BROKEN, "prefill engine answered with something that is not JSON");
        }
        JsonNode params = answer.path("kv_transfer_params");
        boolean nothing =
                params.isMissingNode()
                        || params.isNull()
                        || (params.isObject() && params.isEmpty());
        String finish = answer.path("choices").path(0).path("finish_reason").asText();
        if (nothing && finish.equals("abort")) {
            call.settle(Outcome.FAILED);
            return new Prefilled.Aborted();
        }
        call.settle(Outcome.OK);
        if (nothing) {
            metrics.prefillWithoutHandOver(finish.equals("stop"));
            return new Prefilled.NotHandedOver();
        }
        return new Prefilled.HandedOver(params);
    }

    private Outcome decode(byte[] body, String handOver, Exchange exchange) {
        try (Leg.Answer answer =
                decode.open(
                        decode.candidates(),
                        engine -> exchange.postTo(engine, body).build(),
                        exchange.endpoint(),
                        exchange.client())) {
            exchange.response().header(HAND_OVER, handOver);
            return relay.relay(decode, answer.call(), answer.head(), exchange.response());
        } catch (UpstreamFailure e) {
            return sendFailure(Role.DECODE, e, exchange);
        }
    }

    /**
     * Answers with an engine's failure.
     *
     * @throws AbruptEnd if nobody is there to answer
     */
    static Outcome sendFailure(Role leg, UpstreamFailure failure, Exchange exchange) {
        if (failure.outcome() == Outcome.CANCELLED) {
            throw new AbruptEnd(Outcome.CANCELLED, failure.detail());
        }
        ApiError.of(leg, failure).send(exchange.response());
        return failure.outcome();
    }
}
