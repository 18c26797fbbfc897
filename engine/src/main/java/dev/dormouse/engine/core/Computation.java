package dev.dormouse.engine.core;

import dev.dormouse.connector.FinishKind;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.output.OutputProcessor;
import dev.dormouse.engine.sampling.Candidates;
import dev.dormouse.engine.sampling.NoTokenLeftException;
import dev.dormouse.engine.sampling.SampledToken;
import dev.dormouse.model.Logits;
import dev.dormouse.model.SequenceChunk;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * One step's work: the model computes a batch, and each sequence whose tokens are all computed gets
 * its next one. Used by the engine's thread.
 */
final class Computation {
    private static final System.Logger LOG = System.getLogger("dormouse.engine");

    private final Ranks ranks;
    private final Scheduler scheduler;
    private final Counters counters;
    private final StatisticsBoard statistics;
    private final Candidates candidates = new Candidates();

    Computation(Ranks ranks, Scheduler scheduler, Counters counters, StatisticsBoard statistics) {
        this.ranks = ranks;
        this.scheduler = scheduler;
        this.counters = counters;
        this.statistics = statistics;
    }

    /** Computes a batch; what cannot be computed fails its requests and no others. */
    void run(Batch batch) {
        List<SequenceChunk> chunks = batch.chunks();
        Logits logits;
        try {
            logits = ranks.forward(chunks);
        } catch (RuntimeException e) {
            LOG.log(Level.ERROR, () -> "step failed sequences=" + batch.parts().size(), e);
            for (Batch.Part part : batch.parts()) {
                scheduler.fail(
                        part.sequence(),
                        FailureKind.INTERNAL,
                        "the computation failed: " + e.getMessage());
            }
            return;
        }
        score(batch, logits);
        scheduler.computed(batch);
        int rows = 0;
        for (Batch.Part part : batch.parts()) {
            rows += part.logitRows();
            Sequence sequence = part.sequence();
            int row = rows - 1;
            if (sequence.uncomputed() == 0) {
                generate(sequence, () -> sequence.sample(logits, row, candidates));
            }
        }
    }

    /** Before anything is sampled, since that changes rows. */
    private static void score(Batch batch, Logits logits) {
        int row = 0;
        for (Batch.Part part : batch.parts()) {
            part.sequence().score(logits, row, part.tokens());
            row += part.logitRows();
        }
    }

    /** A sequence's first token is known: nothing is computed for it. */
    void takeFirstToken(Sequence sequence) {
        generate(
                sequence,
                () -> {
                    SampledToken token = sequence.takeFirstToken();
                    counters.remoteFirstTokens++;
                    return token;
                });
    }

    private void generate(Sequence sequence, Supplier<SampledToken> choice) {
        OutputProcessor.Step step;
        try {
            step = sequence.append(choice.get());
        } catch (NoTokenLeftException e) {
            scheduler.fail(sequence, FailureKind.INVALID_REQUEST, String.valueOf(e.getMessage()));
            return;
        } catch (RuntimeException e) {
            LOG.log(Level.ERROR, () -> "output failed request=" + sequence.id(), e);
            scheduler.fail(sequence, FailureKind.INTERNAL, "the output failed: " + e.getMessage());
            return;
        }
        counters.generatedTokens++;
        FinishReason finish = step.finish();
        if (finish != null) {
            FinishKind kind =
                    switch (finish) {
                        case STOP -> FinishKind.STOPPED;
                        case LENGTH -> FinishKind.LENGTH;
                        case ABORT -> FinishKind.ABORTED;
                    };
            @Nullable KvTransferParams params = scheduler.end(sequence, kind);
            statistics.refresh();
            sequence.tellFinished(finish, step.stopReason(), params);
        }
    }
}
