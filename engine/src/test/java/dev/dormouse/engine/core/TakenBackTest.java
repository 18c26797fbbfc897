package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.Prompts.prompt;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.TransitionReport;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A transition that meets blocks which are held for another engine. */
final class TakenBackTest {
    private final FakeConnector connector = new FakeConnector(2);
    private final EngineHarness engine = new EngineHarness(EngineHarness.roomy(), connector);
    private String held = "";

    @BeforeEach
    void handOver() {
        engine.opened();
        RecordingListener prefill =
                engine.submit("p", prompt(1, 9), 1, FakeConnector.remoteDecode());
        engine.settle();
        prefill.finished();
        held = FakeConnector.idOf(connector.held, "p");
        connector.calls.clear();
    }

    @AfterEach
    void close() {
        if (connector.held.contains(held)) {
            connector.endHold(held);
        }
        engine.close();
    }

    @ParameterizedTest
    @EnumSource(names = {"ABORT", "KEEP"})
    void takesThemBackIfTheMemoryGoesAndSleepsWhenReadersAreDone(PauseMode mode) {
        CompletableFuture<TransitionReport> sleep = engine.engine.sleep(1, mode);
        engine.settle();
        assertThat(connector.calls).containsExactly("revoke");
        assertThat(sleep).isNotDone();
        connector.endHold(held);
        assertThat(engine.made(sleep).changed()).isTrue();
        assertThat(connector.calls).startsWith("revoke", "withdraw", "prepare 0");
    }

    @Test
    void waitsForReadersIfTheModeIsWait() {
        CompletableFuture<TransitionReport> sleep = engine.engine.sleep(1, PauseMode.WAIT);
        engine.settle();
        assertThat(sleep).isNotDone();
        assertThat(connector.calls).isEmpty();
        connector.endHold(held);
        assertThat(engine.made(sleep).changed()).isTrue();
    }

    @ParameterizedTest
    @EnumSource
    void leavesThemHeldIfTheMemoryStays(PauseMode mode) {
        engine.made(engine.engine.sleep(0, mode));
        assertThat(connector.calls).isEmpty();
        assertThat(connector.held).containsExactly(held);
    }

    @Test
    void takesNothingBackIfNothingIsHeld() {
        connector.endHold(held);
        engine.settle();
        engine.made(engine.engine.sleep(1, PauseMode.ABORT));
        assertThat(connector.calls).startsWith("withdraw").doesNotContain("revoke");
    }

    @Test
    void isPublishedAgainIfItIsGivenUp() {
        long epoch = connector.scheduling.epoch();
        CompletableFuture<TransitionReport> sleep = engine.engine.sleep(1, PauseMode.ABORT);
        engine.settle();
        engine.made(engine.engine.resume());
        assertThat(sleep).isCompletedExceptionally();
        assertThat(connector.calls).containsExactly("revoke", "publish 2");
        assertThat(connector.scheduling.epoch()).isEqualTo(epoch + 1);
        assertThat(engine.engine.state().phase()).isEqualTo(Phase.AWAKE);
        assertThat(engine.generate("after", prompt(1, 5), 3))
                .isEqualTo(HashModel.oracle(prompt(1, 5), 3));
    }

    @Test
    void everyCallIsAnsweredIfItCannotBePublishedAgain() {
        CompletableFuture<TransitionReport> sleep = engine.engine.sleep(1, PauseMode.ABORT);
        engine.settle();
        connector.failPublish = true;
        CompletableFuture<TransitionReport> resume = engine.engine.resume();
        assertThat(engine.refused(sleep)).hasMessageContaining("could not be undone");
        assertThat(engine.refused(resume)).hasMessageContaining("the engine has failed");
        assertThat(engine.engine.state().phase()).isEqualTo(Phase.FAILED);
    }

    @Test
    void isNotPublishedAgainIfNothingWasTakenBack() {
        CompletableFuture<TransitionReport> sleep = engine.engine.sleep(1, PauseMode.WAIT);
        engine.settle();
        engine.made(engine.engine.resume());
        assertThat(sleep).isCompletedExceptionally();
        assertThat(connector.calls).isEqualTo(List.of());
    }
}
