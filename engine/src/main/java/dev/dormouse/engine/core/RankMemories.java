package dev.dormouse.engine.core;

import dev.dormouse.memory.MemoryTag;
import dev.dormouse.model.KvCacheShape;
import dev.dormouse.model.LanguageModel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The memory of a model's ranks, before they have workers. Used by one thread. */
final class RankMemories {
    private final List<RankMemory> ofRank = new ArrayList<>();

    private RankMemories() {}

    /** Brings the memory of every rank, and reads its weights. */
    static RankMemories load(
            LanguageModel model, KvCacheShape shape, int kvBlocks, RankMemory.Source source) {
        RankMemories memories = new RankMemories();
        try {
            for (int rank = 0; rank < model.ranks(); rank++) {
                memories.load(
                        rank,
                        model,
                        source.reserve(
                                rank,
                                Map.of(
                                        MemoryTag.WEIGHTS,
                                        model.weightBytes(rank),
                                        MemoryTag.KV_CACHE,
                                        kvBlocks * shape.blockBytesAllLayers())));
            }
        } catch (RuntimeException | Error e) {
            memories.closeAfter(e);
            throw e;
        }
        return memories;
    }

    private void load(int rank, LanguageModel model, RankMemory memory) {
        ofRank.add(memory);
        var _ = memory.wake(Set.of(MemoryTag.WEIGHTS, MemoryTag.KV_CACHE));
        loadWeights(rank, model, memory);
    }

    /** Fills a rank's weights, which have pages, from the model's file. */
    static void loadWeights(int rank, LanguageModel model, RankMemory memory) {
        try (RankMemory.Use use = memory.use(MemoryTag.WEIGHTS, "load weights")) {
            model.loadWeights(rank, use.segment());
        }
    }

    /** One rank's. */
    RankMemory get(int rank) {
        return ofRank.get(rank);
    }

    /** Gives all of it back after a failure, which collects those of the way. */
    void closeAfter(Throwable failure) {
        Cleanup cleanup = new Cleanup(failure);
        ofRank.forEach(memory -> cleanup.run(memory::close));
    }
}
