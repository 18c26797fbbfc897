package dev.dormouse.engine.core;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.SamplingParameters;
import dev.dormouse.model.KvType;
import dev.dormouse.model.LlamaModel;
import dev.dormouse.model.ModelFiles;
import dev.dormouse.model.tokenizer.Tokenizer;
import dev.dormouse.testkit.Await;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The tiny models of module {@code model} in an engine that sleeps: before and after, its greedy
 * tokens are those that transformers computed.
 */
final class FolderModelTest {
    private static final Path FOLDERS = Path.of("../model/src/test/resources/folders");
    private static final EngineConfig CONFIG =
            new EngineConfig(
                    "tiny",
                    4 << 20,
                    16,
                    KvType.F16,
                    256,
                    4,
                    64,
                    100,
                    true,
                    true,
                    false,
                    true,
                    true);

    private record Answer(String text, List<Integer> greedy) {}

    private static List<Answer> answers(Path folder) throws IOException {
        List<Answer> answers = new ArrayList<>();
        JsonNode expected = new ObjectMapper().readTree(folder.resolve("expected.json").toFile());
        for (JsonNode answer : expected.path("answers")) {
            List<Integer> greedy = new ArrayList<>();
            answer.path("greedy").forEach(token -> greedy.add(token.intValue()));
            answers.add(new Answer(answer.path("text").textValue(), greedy));
        }
        return answers;
    }

    @ParameterizedTest
    @ValueSource(strings = {"llama", "qwen2", "qwen3"})
    void weightsThatComeBackAfterALevelTwoSleepGiveTheSameTokens(String name) throws IOException {
        Path folder = FOLDERS.resolve(name);
        List<Answer> answers = answers(folder);
        try (ModelFiles files = ModelFiles.open(folder)) {
            Tokenizer tokenizer = files.tokenizer();
            LlamaModel model = files.openModel(2);
            try (Engine engine =
                    Engines.start(CONFIG, model, () -> tokenizer, () -> null, new MemoryFiles())) {
                check(engine, tokenizer, "awake", answers);
                for (int cycle = 0; cycle < 2; cycle++) {
                    engine.sleep(2, PauseMode.ABORT).join();
                    engine.wake(null).join();
                    check(engine, tokenizer, "cycle " + cycle, answers);
                }
            }
        }
    }

    private static void check(
            Engine engine, Tokenizer tokenizer, String what, List<Answer> answers) {
        for (Answer answer : answers) {
            RecordingListener listener = new RecordingListener();
            List<Integer> tokens =
                    Arrays.stream(tokenizer.encode(answer.text, true, false)).boxed().toList();
            SamplingParameters greedy = SamplingParameters.greedy(answer.greedy.size());
            engine.submit(
                    new GenerationRequest(what + ": " + answer.text, tokens, greedy, null),
                    listener);
            Await.until(
                    "the output's end",
                    Duration.ofMinutes(2),
                    listener::isOver,
                    () -> "tokens so far: " + listener.tokens());
            assertThat(listener.tokens()).as(what).isEqualTo(answer.greedy);
        }
    }
}
