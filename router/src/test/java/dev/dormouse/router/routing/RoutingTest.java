package dev.dormouse.router.routing;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What is decided for a request, step by step, without engines. */
class RoutingTest {
    private static final URI ANYWHERE = URI.create("http://127.0.0.1:1");
    private static final ObjectNode PARAMS = Json.object().put("remote_host", "10.0.0.1");

    private final EnginePool prefill = EnginePool.of(Role.PREFILL, List.of(ANYWHERE, ANYWHERE));
    private final EnginePool decode = EnginePool.of(Role.DECODE, List.of(ANYWHERE, ANYWHERE));
    private final Routing routing = routing("{\"prompt\":\"p\",\"max_tokens\":9}");

    @Test
    void aPromptIsPrefilledHandedOverAndDecoded() {
        Step.Ask first = (Step.Ask) routing.begin();
        assertThat(first.engine()).isSameAs(prefill.engines().get(0));
        assertThat(body(first).path("max_tokens").intValue()).isEqualTo(1);
        assertThat(first.handOver()).isNull();

        assertThat(routing.answered(200)).isEqualTo(new Step.ReadAnswer());
        Step.Ask second = (Step.Ask) routing.prefilled(new PrefillAnswer.HandedOver(PARAMS));
        assertThat(second.engine()).isSameAs(decode.engines().get(0));
        assertThat(body(second).path("max_tokens").intValue()).isEqualTo(9);
        assertThat(body(second).path("kv_transfer_params")).isEqualTo(PARAMS);
        assertThat(second.handOver()).isEqualTo(HandOver.YES);

        assertThat(routing.answered(200)).isEqualTo(new Step.PassOn(Role.DECODE, Outcome.OK));
        assertThat(routing.passedOn(Outcome.OK)).isEqualTo(new Step.Finished(Outcome.OK));
    }

    @Test
    void whatIsNotHandedOverIsComputedByTheDecodeEngine() {
        var _ = routing.begin();
        var _ = routing.answered(200);
        Step.Ask ask = (Step.Ask) routing.prefilled(new PrefillAnswer.NothingHandedOver(true));

        assertThat(ask.engine().role()).isEqualTo(Role.DECODE);
        assertThat(body(ask).has("kv_transfer_params")).isFalse();
        assertThat(ask.handOver()).isEqualTo(HandOver.NO);
    }

    @Test
    void aDetourStartsAtADecodeEngine() {
        Step.Ask ask = (Step.Ask) routing("{\"prompt\":\"p\",\"n\":2}").begin();

        assertThat(ask.engine().role()).isEqualTo(Role.DECODE);
        assertThat(ask.handOver()).isEqualTo(HandOver.BYPASSED);
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void whoCannotBeReachedHasSeenNothingSoTheNextIsAsked(Role role) {
        Step.Ask first = leg(role);
        Step.Ask second = (Step.Ask) routing.failed(Outcome.UNREACHABLE, "there is nobody");

        assertThat(first.engine().health().readiness()).isEqualTo(Engine.Readiness.DOWN);
        assertThat(second.engine()).isNotSameAs(first.engine());
        assertThat(second.engine().role()).isEqualTo(role);
        assertThat(second.body()).isEqualTo(first.body());
        Step.Refuse last = (Step.Refuse) routing.failed(Outcome.UNREACHABLE, "there is nobody");
        assertThat(last.outcome()).isEqualTo(Outcome.UNREACHABLE);
        assertThat(last.error().code()).isEqualTo(role.label() + "_unreachable");
    }

    @Test
    void aPrefillEngineThatTakesNothingNowIsFollowedByTheNext() {
        Step.Ask first = (Step.Ask) routing.begin();
        Step.Ask second = (Step.Ask) routing.answered(503);
        assertThat(first.engine().health().readiness()).isEqualTo(Engine.Readiness.UNREADY);
        assertThat(second.engine()).isSameAs(prefill.engines().get(1));

        var _ = routing.answered(200);
        Step.Refuse last = (Step.Refuse) routing.prefilled(new PrefillAnswer.Aborted());
        assertThat(second.engine().health().readiness()).isEqualTo(Engine.Readiness.UNREADY);
        assertThat(last.error().code()).isEqualTo("prefill_unavailable");
    }

    @Test
    void aPrefillEngineThatEndsARequestByItselfIsFollowedByTheNext() {
        var _ = routing.begin();
        var _ = routing.answered(200);
        Step.Ask second = (Step.Ask) routing.prefilled(new PrefillAnswer.Aborted());
        assertThat(second.engine()).isSameAs(prefill.engines().get(1));
        assertThat(routing.answered(503)).isEqualTo(new Step.Explain(Role.PREFILL, 503));
    }

    @ParameterizedTest
    @EnumSource(
            value = Outcome.class,
            names = {"BROKEN", "TIMED_OUT"})
    void afterOtherFailuresNobodyElseIsAsked(Outcome outcome) {
        for (Role role : Role.values()) {
            var _ = leg(role);
            if (role == Role.PREFILL && outcome == Outcome.BROKEN) {
                var _ = routing.failed(outcome, "it failed once");
            }
            Step.Refuse last = (Step.Refuse) routing.failed(outcome, "it failed");
            assertThat(last.outcome()).isEqualTo(outcome);
            assertThat(last.error().leg()).isEqualTo(role);
        }
    }

    @Test
    void aPrefillEngineWhoseConnectionBreaksIsAskedOnceMoreAndNobodyElseAfterIt() {
        Step.Ask first = (Step.Ask) routing.begin();
        Step.Ask second = (Step.Ask) routing.failed(Outcome.BROKEN, "no byte came");
        assertThat(second.engine()).isSameAs(first.engine());
        Step.Refuse last = (Step.Refuse) routing.failed(Outcome.UNREACHABLE, "it is gone");
        assertThat(last.error().code()).isEqualTo("prefill_unreachable");
    }

    @Test
    void anAnswerThatBreaksOffIsNotAskedForAgain() {
        var _ = routing.begin();
        var _ = routing.answered(200);
        assertThat(routing.failed(Outcome.BROKEN, "half")).isInstanceOf(Step.Refuse.class);
    }

    @Test
    void whoHasAnsweredIsReachable() {
        var _ = leg(Role.DECODE);
        var _ = routing.answered(200);
        assertThat(routing.failed(Outcome.UNREACHABLE, "gone")).isInstanceOf(Step.Refuse.class);
    }

    @Test
    void aRefusalOfADecodeEngineIsFinal() {
        var _ = leg(Role.DECODE);
        assertThat(routing.answered(503)).isEqualTo(new Step.Explain(Role.DECODE, 503));
    }

    @ParameterizedTest
    @EnumSource(Role.class)
    void theClientsFaultIsToldAsItIs(Role role) {
        var _ = leg(role);
        assertThat(routing.answered(429)).isEqualTo(new Step.PassOn(role, Outcome.REJECTED));
    }

    @Test
    void anUnusableAnswerIsABrokenOne() {
        var _ = routing.begin();
        var _ = routing.answered(200);
        Step.Refuse last = (Step.Refuse) routing.prefilled(new PrefillAnswer.Unusable("why"));
        assertThat(last.outcome()).isEqualTo(Outcome.BROKEN);
    }

    @Test
    void nobodyIsAskedForAClientThatHasLeft() {
        var _ = routing.begin();
        assertThat(routing.failed(Outcome.CANCELLED, "left"))
                .isEqualTo(new Step.BreakOff(Outcome.CANCELLED, "left"));
    }

    @Test
    void onlyAStreamOfWholeEventsIsEndedWithAnError() {
        var _ = leg(Role.DECODE);
        var _ = routing.answered(200);
        assertThat(routing.brokeOff(Outcome.BROKEN, "b", true))
                .isEqualTo(
                        new Step.EndStream(
                                ApiError.of(Role.DECODE, Outcome.BROKEN, "b"), Outcome.BROKEN));
        assertThat(routing.brokeOff(Outcome.BROKEN, "b", false))
                .isEqualTo(new Step.BreakOff(Outcome.BROKEN, "b"));
        assertThat(routing.brokeOff(Outcome.CANCELLED, "c", true))
                .isEqualTo(new Step.BreakOff(Outcome.CANCELLED, "c"));
    }

    @Test
    void aQuestionGoesToDecodeEnginesWithoutABody() {
        Routing question = Routing.ofQuestion(decode);
        assertThat(question.begin()).isEqualTo(new Step.Ask(decode.engines().get(0), null, null));
        assertThat(question.failed(Outcome.UNREACHABLE, "u"))
                .isEqualTo(new Step.Ask(decode.engines().get(1), null, null));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"kv_transfer_params\":{\"a\":1},\"choices\":[{\"finish_reason\":\"abort\"}]}",
                "{\"kv_transfer_params\":[7]}"
            })
    void whatIsHandedOverIsNotJudged(String answer) {
        assertThat(read(answer)).isInstanceOf(PrefillAnswer.HandedOver.class);
    }

    @Test
    void answersAreTold() {
        assertThat(read("{\"choices\":[{\"finish_reason\":\"abort\"}]}"))
                .isEqualTo(new PrefillAnswer.Aborted());
        assertThat(read("{\"choices\":[{\"finish_reason\":\"stop\"}]}"))
                .isEqualTo(new PrefillAnswer.NothingHandedOver(true));
        assertThat(read("{\"kv_transfer_params\":{}}"))
                .isEqualTo(new PrefillAnswer.NothingHandedOver(false));
        assertThat(read("{")).isInstanceOf(PrefillAnswer.Unusable.class);
        assertThat(PrefillAnswer.read(new byte[11], 10))
                .isEqualTo(new PrefillAnswer.Unusable("answer longer than 10 bytes"));
    }

    /** The first question of a leg. */
    private Step.Ask leg(Role role) {
        return (Step.Ask)
                switch (role) {
                    case PREFILL -> routing.begin();
                    case DECODE -> routing.prefilled(new PrefillAnswer.HandedOver(PARAMS));
                };
    }

    private static PrefillAnswer read(String answer) {
        return PrefillAnswer.read(answer.getBytes(StandardCharsets.UTF_8), 1000);
    }

    private static JsonNode body(Step.Ask ask) {
        return Objects.requireNonNull(ask.body());
    }

    private Routing routing(String body) {
        try {
            return Routing.ofCompletion(
                    CompletionRequest.parse(body.getBytes(StandardCharsets.UTF_8), false),
                    prefill,
                    decode);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }
}
