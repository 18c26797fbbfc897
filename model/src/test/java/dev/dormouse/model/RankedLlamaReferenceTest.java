package dev.dormouse.model;

/** As {@link LlamaReferenceTest}, by three ranks. */
final class RankedLlamaReferenceTest extends LlamaReferenceTest {
    @Override
    int ranks() {
        return 3;
    }
}
