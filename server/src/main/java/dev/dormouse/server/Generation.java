package dev.dormouse.server;

import dev.dormouse.engine.Engine;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * The sequences of one HTTP request, from submission to their ends. Closing it ends what still
 * runs, so that a client that left costs nothing further.
 *
 * <p>One thread submits and takes; the engine's thread delivers. The queue holds at most what the
 * sequences may generate.
 */
final class Generation implements AutoCloseable {
    private final Engine engine;
    private final List<GenerationRequest> requests;
    private final BlockingQueue<Arrival> arrivals = new LinkedBlockingQueue<>();
    private final List<Boolean> open = new ArrayList<>();
    private int openCount;

    /**
     * An event of one sequence.
     *
     * @param index the sequence, in the order of the answer's choices
     * @param event what became of it
     */
    record Arrival(int index, GenerationEvent event) {}

    private Generation(Engine engine, List<GenerationRequest> requests) {
        this.engine = engine;
        this.requests = requests;
    }

    /** Submits all sequences. */
    static Generation start(Engine engine, List<GenerationRequest> requests) {
        Generation generation = new Generation(engine, requests);
        for (int i = 0; i < requests.size(); i++) {
            int index = i;
            generation.open.add(true);
            generation.openCount++;
            engine.submit(
                    requests.get(i), event -> generation.arrivals.add(new Arrival(index, event)));
        }
        return generation;
    }

    /** True while a sequence has not ended. */
    boolean isOpen() {
        return openCount > 0;
    }

    /**
     * Waits for the next event of any sequence.
     *
     * @throws ApiException if a sequence failed
     */
    Arrival next() throws InterruptedException {
        Arrival arrival = arrivals.take();
        switch (arrival.event()) {
            case GenerationEvent.Tokens ignored -> {}
            case GenerationEvent.Finished ignored -> ended(arrival.index());
            case GenerationEvent.Failed failed -> {
                ended(arrival.index());
                throw ApiException.of(failed);
            }
        }
        return arrival;
    }

    private void ended(int index) {
        open.set(index, false);
        openCount--;
    }

    @Override
    public void close() {
        for (int i = 0; i < requests.size(); i++) {
            if (open.get(i)) {
                engine.abort(requests.get(i).id());
            }
        }
    }
}
