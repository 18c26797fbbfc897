package dev.dormouse.engine.core;

import dev.dormouse.model.LanguageModel;
import dev.dormouse.model.Logits;
import dev.dormouse.model.RankView;
import dev.dormouse.model.SequenceChunk;
import java.util.ArrayList;
import java.util.List;

/**
 * The model and the ranks that share it: each has memory and a connector of its own, and all of
 * them compute a step together. Used by one thread.
 */
final class Ranks {
    private final LanguageModel model;
    private final List<Worker> workers;

    /**
     * The ranks of a model, which they own.
     *
     * @param workers in rank order
     */
    Ranks(LanguageModel model, List<Worker> workers) {
        this.model = model;
        this.workers = List.copyOf(workers);
    }

    List<Worker> workers() {
        return workers;
    }

    /** Computes a step; the logits are valid until the next one. */
    Logits forward(List<SequenceChunk> batch) {
        List<Worker.Step> steps = new ArrayList<>(workers.size());
        try {
            List<RankView> views = new ArrayList<>(workers.size());
            for (Worker worker : workers) {
                Worker.Step step = worker.open("forward");
                steps.add(step);
                views.add(step.view());
            }
            return model.forward(batch, views);
        } finally {
            steps.forEach(Worker.Step::close);
        }
    }

    /** Ends the ranks, then the model. Finishes all steps. */
    void close() {
        Cleanup cleanup = new Cleanup();
        workers.forEach(worker -> cleanup.run(worker::close));
        cleanup.run(model::close);
        cleanup.finish();
    }
}
