package dev.dormouse.simulation;

import dev.dormouse.connector.ReadBack;
import dev.dormouse.connector.SideChannelAddress;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.model.KvType;
import dev.dormouse.router.routing.Role;
import dev.dormouse.testkit.Addressing;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * What a seed's world consists of.
 *
 * @param addressing whether reads follow pages, as RDMA's do, the reader's own mapping, as shared
 *     memory's, or addresses, as {@code cma}'s
 * @param kvHeads of the model
 * @param engines all engines, prefill engines first
 * @param faults whether things go wrong
 * @param sleeps whether engines sleep
 * @param events how many things happen before the world heals
 */
record Setting(
        Addressing addressing,
        int kvHeads,
        List<EngineSpec> engines,
        boolean faults,
        boolean sleeps,
        int events) {
    private static final String HOST = "10.0.0.1";
    private static final int FIRST_PORT = 5_600;

    private static final List<Addressing> ADDRESSINGS =
            List.of(Addressing.PAGES, Addressing.MAPPED, Addressing.VIRTUAL);

    /** The longest prompt with its output, which fits into every engine. */
    static final int MAX_TOKENS = 30;

    Setting {
        engines = List.copyOf(engines);
    }

    static Setting draw(SplittableRandom random) {
        int kvHeads = random.nextBoolean() ? 2 : 4;
        List<Integer> sizes = new ArrayList<>();
        int prefills = 1 + random.nextInt(2);
        int decodes = 1 + random.nextInt(2);
        int largestPrefill = 0;
        int smallestDecode = Integer.MAX_VALUE;
        for (int i = 0; i < prefills + decodes; i++) {
            int ranks = random.nextInt(3) == 0 ? 1 << random.nextInt(3) : 1;
            sizes.add(ranks);
            if (i < prefills) {
                largestPrefill = Math.max(largestPrefill, ranks);
            } else {
                smallestDecode = Math.min(smallestDecode, ranks);
            }
        }
        // A holder's blocks may be shorter where the readers have at least as many ranks.
        boolean push = random.nextInt(4) == 0;
        boolean nextTurns = !push && random.nextInt(3) > 0;
        int prefillBlock =
                !push && largestPrefill <= smallestDecode && random.nextInt(4) == 0 ? 2 : 4;
        List<EngineSpec> engines = new ArrayList<>();
        for (int i = 0; i < sizes.size(); i++) {
            boolean prefill = i < prefills;
            engines.add(
                    new EngineSpec(
                            prefill ? "P" + i : "D" + (i - prefills),
                            prefill ? Role.PREFILL : Role.DECODE,
                            nextTurns
                                    ? new ReadBack(
                                            Duration.ofSeconds(2 + random.nextInt(20)),
                                            random.nextInt(6))
                                    : null,
                            push,
                            new SideChannelAddress(HOST, FIRST_PORT + i),
                            kvHeads,
                            sizes.get(i),
                            engine(random, kvHeads, sizes.get(i), prefill ? prefillBlock : 4),
                            Duration.ofSeconds(2 + random.nextInt(20)),
                            random.nextInt(4) == 0
                                    ? Duration.ofSeconds(1 + random.nextInt(60))
                                    : Duration.ZERO,
                            Duration.ofMillis(random.nextLong(-20_000_000, 20_000_000))));
        }
        boolean faults = random.nextInt(4) > 0;
        boolean sleeps = random.nextInt(8) > 0;
        return new Setting(
                ADDRESSINGS.get(random.nextInt(ADDRESSINGS.size())),
                kvHeads,
                engines,
                faults,
                sleeps,
                300 + random.nextInt(1_500));
    }

    private static EngineConfig engine(
            SplittableRandom random, int kvHeads, int ranks, int blockTokens) {
        int kvBlocks = (MAX_TOKENS + 2) / blockTokens + random.nextInt(24);
        long blockBytes =
                (long) Math.max(ranks, kvHeads)
                        * blockTokens
                        * 2
                        * ChainModel.HEAD_DIMENSION
                        * KvType.F16.bytes()
                        * ChainModel.LAYERS;
        int maxSequences = 1 + random.nextInt(5);
        return new EngineConfig(
                "chain",
                kvBlocks * blockBytes,
                blockTokens,
                KvType.F16,
                MAX_TOKENS + 1,
                maxSequences,
                maxSequences + random.nextInt(24),
                1 + random.nextInt(20),
                random.nextBoolean(),
                true,
                random.nextInt(3) == 0,
                random.nextBoolean(),
                true);
    }
}
