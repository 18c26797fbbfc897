package dev.dormouse.engine.core;

import dev.dormouse.connector.ConnectorStep;
import dev.dormouse.connector.KvCacheRegions;
import dev.dormouse.connector.RankPayload;
import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.connector.WorkerConnector;
import dev.dormouse.connector.WorkerReport;
import dev.dormouse.memory.MemoryTag;
import dev.dormouse.model.KvCacheShape;
import dev.dormouse.model.LanguageModel;
import dev.dormouse.model.PagedKv;
import dev.dormouse.model.RankView;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * One rank: the memory that its share of the model computes in, and its half of the connector. Used
 * by one thread.
 *
 * <p>The KV cache is one allocation; each layer's region is a slice of it.
 */
final class Worker {
    /** vLLM's name order of the dimensions in {@link KvCacheShape}. */
    private static final String LAYOUT = "LBHNC";

    private static final WorkerReport NOTHING =
            new WorkerReport(Set.of(), Set.of(), Set.of(), TransferStatistics.NONE);

    private final int rank;
    private final LanguageModel model;
    private final @Nullable WorkerConnector connector;
    private final KvCacheShape shape;
    private final int kvBlocks;
    private final RankMemory memory;

    /** Takes the rank's memory, which has weights and KV cache. */
    Worker(
            int rank,
            LanguageModel model,
            @Nullable WorkerConnector connector,
            KvCacheShape shape,
            int kvBlocks,
            RankMemory memory) {
        this.rank = rank;
        this.model = model;
        this.connector = connector;
        this.shape = shape;
        this.kvBlocks = kvBlocks;
        this.memory = memory;
    }

    /** Registers the KV cache with the connector. */
    void open() {
        if (connector != null) {
            connector.registerKvCaches(regions());
        }
    }

    /** See {@link WorkerConnector#wakeWith}. */
    void wakeWith(Runnable wake) {
        if (connector != null) {
            connector.wakeWith(wake);
        }
    }

    /** Opens the rank's memory for a step. */
    Step open(String holder) {
        RankMemory.Use weights = memory.use(MemoryTag.WEIGHTS, holder);
        try {
            return new Step(weights, memory.use(MemoryTag.KV_CACHE, holder));
        } catch (RuntimeException e) {
            weights.close();
            throw e;
        }
    }

    /** Keeps weights and KV cache awake until it is closed. */
    final class Step implements AutoCloseable {
        private final RankMemory.Use weights;
        private final RankMemory.Use kv;

        private Step(RankMemory.Use weights, RankMemory.Use kv) {
            this.weights = weights;
            this.kv = kv;
        }

        RankView view() {
            return new RankView(
                    weights.segment(), new PagedKv(shape, kvBlocks, layers(kv.segment())));
        }

        @Override
        public void close() {
            try (weights;
                    kv) {
                // In the reverse order of this list.
            }
        }
    }

    void start(ConnectorStep step) {
        if (connector != null) {
            connector.start(step);
        }
    }

    WorkerReport poll() {
        return connector == null ? NOTHING : connector.poll();
    }

    RankPayload payload() {
        if (connector == null) {
            throw new IllegalStateException("payload: this engine has no connector");
        }
        return connector.payload();
    }

    /** See {@link WorkerConnector#prepareRelease}. */
    void prepareRelease(Duration limit) {
        if (connector != null) {
            connector.prepareRelease(limit);
        }
    }

    /** See {@link WorkerConnector#releaseKvCaches}; must precede the unmapping of the KV cache. */
    void releaseKvCaches(Duration limit) {
        if (connector != null) {
            connector.releaseKvCaches(limit);
        }
    }

    /** See {@link WorkerConnector#restoreKvCaches}; must follow the mapping of the KV cache. */
    void restoreKvCaches() {
        if (connector != null) {
            connector.restoreKvCaches();
        }
    }

    boolean isMapped(MemoryTag tag) {
        return memory.isAwake(tag);
    }

    /**
     * Gives pages back to the machine; what is away already stays so.
     *
     * @return how many bytes
     */
    long unmap(Set<MemoryTag> tags) {
        return memory.sleep(tags);
    }

    /**
     * Brings pages, with undefined content; what is there already is left alone.
     *
     * @return how many bytes
     */
    long map(Set<MemoryTag> tags) {
        return memory.wake(tags);
    }

    /** Fills the rank's weights from the model's file. */
    void loadWeights() {
        RankMemories.loadWeights(rank, model, memory);
    }

    /**
     * Ends connector and memory. If the connector cannot end, its transfers may still touch the
     * memory, which therefore stays.
     */
    void close() {
        if (connector != null) {
            connector.close();
        }
        memory.close();
    }

    private KvCacheRegions regions() {
        long layerBytes = kvBlocks * shape.blockBytes();
        List<KvCacheRegions.Region> regions = new ArrayList<>();
        for (int layer = 0; layer < shape.layers(); layer++) {
            regions.add(
                    new KvCacheRegions.Region(
                            "model.layers." + layer + ".self_attn.attn",
                            memory.address(MemoryTag.KV_CACHE) + layer * layerBytes,
                            kvBlocks,
                            shape.blockBytes(),
                            shape.blockBytes()));
        }
        MemoryRange whole =
                new MemoryRange(
                        memory.address(MemoryTag.KV_CACHE),
                        memory.lengthBytes(MemoryTag.KV_CACHE),
                        MemoryKind.DRAM,
                        0);
        return new KvCacheRegions(
                regions, List.of(whole), shape.blockTokens(), LAYOUT, MemoryKind.DRAM, 0);
    }

    private List<MemorySegment> layers(MemorySegment cache) {
        long layerBytes = kvBlocks * shape.blockBytes();
        List<MemorySegment> layers = new ArrayList<>(shape.layers());
        for (int layer = 0; layer < shape.layers(); layer++) {
            layers.add(cache.asSlice(layer * layerBytes, layerBytes));
        }
        return layers;
    }
}
