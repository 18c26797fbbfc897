package dev.dormouse.engine.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.memory.MemoryTag;
import dev.dormouse.model.tokenizer.Tokenizer;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Engines that an error keeps from starting leave nothing open. */
final class EnginesTest {
    private final Error error = new NoClassDefFoundError("made to fail");

    private final HashModel model = new HashModel(1);
    private final FakeConnector connector = new FakeConnector(1);
    private final List<RankMemory> memories = new ArrayList<>();

    @Test
    void anErrorOfTheTokenizerClosesMemoryConnectorAndModel() {
        failsWithTheError(connector::halves);

        assertThat(connector.ranks.getFirst().isClosed).isTrue();
        assertThat(connector.scheduling.isClosed()).isTrue();
    }

    @Test
    void anErrorOfTheConnectorClosesMemoryAndModel() {
        failsWithTheError(
                () -> {
                    throw error;
                });
    }

    @Test
    void anErrorWhileWeightsAreLoadedClosesMemoryConnectorAndModel() {
        model.onLoad(
                0,
                () -> {
                    throw error;
                });
        failsWithTheError(connector::halves);

        assertThat(connector.ranks.getFirst().isClosed).isTrue();
        assertThat(connector.scheduling.isClosed()).isTrue();
    }

    private void failsWithTheError(Supplier<@Nullable ConnectorHalves> halves) {
        RankMemory.Source machine = MachineMemory.source(true, System::nanoTime, new MemoryFiles());
        Supplier<Tokenizer> tokenizer =
                () -> {
                    throw error;
                };
        assertThatThrownBy(
                        () ->
                                Engines.start(
                                        EngineHarness.roomy(),
                                        model,
                                        tokenizer,
                                        halves,
                                        new Engines.Surroundings(
                                                System::nanoTime,
                                                (rank, bytes) -> {
                                                    RankMemory memory =
                                                            machine.reserve(rank, bytes);
                                                    memories.add(memory);
                                                    return memory;
                                                },
                                                new SplittableRandom(1),
                                                () -> {})))
                .isSameAs(error);
        assertThat(model.isClosed()).isTrue();
        assertThat(memories)
                .singleElement()
                .satisfies(
                        memory ->
                                assertThatThrownBy(() -> memory.use(MemoryTag.WEIGHTS, "test"))
                                        .hasMessageContaining("closed"));
    }
}
