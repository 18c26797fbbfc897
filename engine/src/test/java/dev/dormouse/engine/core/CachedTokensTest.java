package dev.dormouse.engine.core;

import static dev.dormouse.engine.core.HashModel.BLOCK_TOKENS;
import static dev.dormouse.engine.core.Prompts.prompt;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.connector.KvTransferParams;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A client hears what was cached where its prompt was computed, whichever engine answers it. */
final class CachedTokensTest {
    private static final List<Integer> PROMPT = prompt(1, 3 * BLOCK_TOKENS + 1);

    private final FakeConnector connector = new FakeConnector(1);

    private EngineHarness engine() {
        return new EngineHarness(EngineHarness.roomy(), connector).opened();
    }

    @Test
    void areHandedOverWithThePrompt() {
        try (EngineHarness engine = engine()) {
            for (int cached : new int[] {0, 3 * BLOCK_TOKENS}) {
                RecordingListener prefill =
                        engine.submit("p" + cached, PROMPT, 1, FakeConnector.remoteDecode());
                engine.settle();
                KvTransferParams params =
                        requireNonNull(prefill.finished().kvTransferParams(), "held");
                assertThat(params.prefillCachedTokens()).hasValue(cached);
                connector.endHold(connector.held.iterator().next());
                engine.settle();
            }
        }
    }

    @Test
    void areThoseOfTheHolderOncePromptsAreRead() {
        try (EngineHarness engine = engine()) {
            assertThat(cachedAfterRead(engine, "told", 2 * BLOCK_TOKENS, true))
                    .isEqualTo(2 * BLOCK_TOKENS);
            engine.made(engine.engine.resetPrefixCache());
            assertThat(cachedAfterRead(engine, "too many", 1 << 30, true)).isEqualTo(PROMPT.size());
            engine.made(engine.engine.resetPrefixCache());
            assertThat(cachedAfterRead(engine, "failed", 2 * BLOCK_TOKENS, false))
                    .as("computed here")
                    .isZero();
        }
    }

    private int cachedAfterRead(EngineHarness engine, String id, int told, boolean good) {
        RecordingListener decode =
                engine.submit(
                        id,
                        PROMPT,
                        5,
                        connector.remotePrefill(PROMPT).withPrefillCachedTokens(told));
        engine.settle();
        connector.endRead(connector.reads.keySet().iterator().next(), good);
        engine.settle();
        assertThat(decode.tokens()).isEqualTo(HashModel.oracle(PROMPT, 5));
        return decode.finished().usage().cachedTokens();
    }
}
