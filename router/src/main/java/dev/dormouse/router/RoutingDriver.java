package dev.dormouse.router;

import dev.dormouse.router.routing.HandOver;
import dev.dormouse.router.routing.Outcome;
import dev.dormouse.router.routing.PrefillAnswer;
import dev.dormouse.router.routing.Routing;
import dev.dormouse.router.routing.Step;
import java.io.InputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.http.HttpResponse;

/**
 * Carries out over HTTP what a request's {@link Routing} decides. Thread-safe; a request runs on
 * its caller's thread.
 */
final class RoutingDriver {
    /** Tells the client how its prompt got to the decode engine. */
    static final String HAND_OVER = "x-dormouse-hand-over";

    private static final Logger LOGGER = System.getLogger("dormouse.router");

    private final UpstreamCalls calls;
    private final ResponseRelay relay;
    private final RouterMetrics metrics;
    private final int maxAnswerBytes;

    /** {@code maxAnswerBytes} bounds a prefill engine's answer. */
    RoutingDriver(
            UpstreamCalls calls, ResponseRelay relay, RouterMetrics metrics, int maxAnswerBytes) {
        this.calls = calls;
        this.relay = relay;
        this.metrics = metrics;
        this.maxAnswerBytes = maxAnswerBytes;
    }

    /**
     * Answers the request.
     *
     * @throws AbruptEnd if the client left, or has half an answer that cannot be completed
     */
    Outcome serve(Routing routing, Exchange exchange) {
        Step step = routing.begin();
        while (step instanceof Step.Ask ask) {
            step = carryOut(ask, routing, exchange);
        }
        return switch (step) {
            case Step.Finished finished -> finished.outcome();
            case Step.EndStream end -> end.outcome();
            case Step.Refuse refuse -> {
                ErrorAnswer.send(refuse.error(), exchange.response());
                yield refuse.outcome();
            }
            case Step.BreakOff end -> throw new AbruptEnd(end.outcome(), end.detail());
            case Step.Ask _, Step.ReadAnswer _, Step.PassOn _, Step.Explain _ ->
                    throw new IllegalStateException("no engine has answered yet: " + step);
        };
    }

    /** Asks one engine, and uses its answer as far as it is of use. */
    private Step carryOut(Step.Ask ask, Routing routing, Exchange exchange) {
        if (exchange.client().gone()) {
            return routing.failed(Outcome.CANCELLED, "the client left");
        }
        try (UpstreamCall call = calls.open(ask, exchange)) {
            HttpResponse<InputStream> head = call.awaitHead();
            Step step = routing.answered(head.statusCode());
            HandOver handOver = ask.handOver();
            if (handOver != null) {
                exchange.response().header(HAND_OVER, handOver.label());
            }
            return switch (step) {
                case Step.ReadAnswer _ -> routing.prefilled(readAnswer(call));
                case Step.PassOn passOn ->
                        relay.passOn(passOn, routing, call, head, exchange.response());
                case Step.Explain explain -> relay.explain(explain, call, head);
                case Step.Ask _,
                        Step.Refuse _,
                        Step.EndStream _,
                        Step.BreakOff _,
                        Step.Finished _ -> {
                    call.settle(Outcome.ofStatus(head.statusCode()));
                    yield step;
                }
            };
        } catch (UpstreamFailure e) {
            return routing.failed(e.outcome(), e.detail());
        }
    }

    private PrefillAnswer readAnswer(UpstreamCall call) throws UpstreamFailure {
        PrefillAnswer answer =
                PrefillAnswer.read(call.readUpTo(maxAnswerBytes + 1), maxAnswerBytes);
        call.settle(answer.outcome());
        switch (answer) {
            case PrefillAnswer.NothingHandedOver nothing ->
                    metrics.prefillWithoutHandOver(nothing.stopped());
            case PrefillAnswer.Unusable unusable ->
                    LOGGER.log(
                            Level.WARNING,
                            "prefill answer unusable: engine={0} cause={1}",
                            call.engine().name(),
                            unusable.cause());
            case PrefillAnswer.HandedOver _, PrefillAnswer.Aborted _ -> {}
        }
        return answer;
    }
}
