package dev.dormouse.model;

/** As {@link LlamaReferenceTest}, by three ranks. */
final class RankedLlamaReferenceTest extends LlamaReferenceTest {
    @Override
    int ranks() {
        return 3;
    }

    /** Few, since three ranks give one rank's bits, see {@link RankedModelTest}. */
    @Override
    int greedyTokens() {
        return 4;
    }
}
