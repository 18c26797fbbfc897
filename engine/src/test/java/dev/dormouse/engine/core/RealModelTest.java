package dev.dormouse.engine.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.engine.WakeTag;
import dev.dormouse.memory.MemoryUsage;
import dev.dormouse.model.KvType;
import dev.dormouse.model.LlamaModel;
import dev.dormouse.model.gguf.GgufFile;
import dev.dormouse.model.tokenizer.Tokenizer;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Natives;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

/** The default model in an engine that sleeps. */
final class RealModelTest {
    private static final long KV_BYTES = 24L << 20;
    private static final int TOKENS = 8;

    private static EngineConfig config(long kvBytes) {
        return new EngineConfig(
                "model", kvBytes, 16, KvType.BF16, 512, 4, 64, 100, true, true, false, true, true);
    }

    private static RecordingListener submit(
            Engine engine, Tokenizer tokenizer, String id, String prompt) {
        RecordingListener listener = new RecordingListener();
        List<Integer> tokens =
                Arrays.stream(tokenizer.encode(prompt, true, false)).boxed().toList();
        engine.submit(
                new GenerationRequest(id, tokens, SamplingParameters.greedy(TOKENS), null),
                listener);
        return listener;
    }

    @Test
    void sleepChangesNoTokenAndGivesTheMemoryBack() {
        List<String> prompts =
                List.of(
                        "The dormouse sleeps through the winter, and when it wakes in spring, it",
                        "A list of the planets, from the sun outwards: Mercury, Venus,");
        try (GgufFile file = GgufFile.open(Natives.model())) {
            Tokenizer tokenizer = Tokenizer.of(file.metadata());
            LlamaModel model = LlamaModel.open(file, 2);
            try (Engine engine =
                    Engines.start(
                            config(KV_BYTES),
                            model,
                            () -> tokenizer,
                            () -> null,
                            new MemoryFiles())) {
                List<RecordingListener> awake = ask(engine, tokenizer, "awake", prompts);

                engine.sleep(1, PauseMode.ABORT).join();
                engine.wake(Set.of(WakeTag.KV_CACHE)).join();
                engine.wake(Set.of(WakeTag.WEIGHTS)).join();
                assertSame(ask(engine, tokenizer, "level 1", prompts), awake);

                RecordingListener kept = submit(engine, tokenizer, "kept", prompts.getFirst());
                await("it has begun", () -> !kept.tokens().isEmpty());
                long awakeBytes = MemoryUsage.ofThisProcess().pssShmemBytes();
                engine.sleep(2, PauseMode.KEEP).join();
                long asleepBytes = MemoryUsage.ofThisProcess().pssShmemBytes();
                assertThat(awakeBytes - asleepBytes)
                        .isGreaterThan((model.weightBytes(0) + KV_BYTES) * 95 / 100);
                engine.wake(null).join();
                await("it ends", kept::isOver);
                assertThat(kept.tokens()).isEqualTo(awake.getFirst().tokens());
                assertSame(ask(engine, tokenizer, "level 2", prompts), awake);
                assertThat(awake.get(1).text()).startsWith(" Earth");
            }
        }
    }

    @Test
    void settingsThatDoNotFitTheModelAreRefused() {
        try (GgufFile file = GgufFile.open(Natives.model())) {
            Tokenizer tokenizer = Tokenizer.of(file.metadata());
            LlamaModel model = LlamaModel.open(file, 1);

            assertThatThrownBy(
                            () ->
                                    Engines.start(
                                            config(1000),
                                            model,
                                            () -> tokenizer,
                                            () -> null,
                                            new MemoryFiles()))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("--kv-cache-memory");
        }
    }

    private static List<RecordingListener> ask(
            Engine engine, Tokenizer tokenizer, String id, List<String> prompts) {
        List<RecordingListener> listeners =
                prompts.stream()
                        .map(prompt -> submit(engine, tokenizer, id + ": " + prompt, prompt))
                        .toList();
        listeners.forEach(listener -> await("the output's end", listener::isOver));
        return listeners;
    }

    /** Generous: until the kernels are compiled the model is slow, the more on a busy machine. */
    private static void await(String what, BooleanSupplier condition) {
        Await.until(what, Duration.ofMinutes(5), condition, () -> "nothing new");
    }

    private static void assertSame(
            List<RecordingListener> actual, List<RecordingListener> expected) {
        for (int i = 0; i < expected.size(); i++) {
            assertThat(actual.get(i).tokens()).hasSize(TOKENS).isEqualTo(expected.get(i).tokens());
        }
    }
}
