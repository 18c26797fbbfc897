package dev.dormouse.server;

import dev.dormouse.engine.Engine;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.http.ClientConnection;
import io.helidon.webserver.CloseConnectionException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * The sequences of one HTTP request, from submission to their ends. Closing it ends what still
 * runs, so that a client that left costs nothing further.
 *
 * <p>If the first sequence's prompt is held by another engine, it is read for that sequence alone;
 * the others, which have the same prompt, follow once it is here.
 *
 * <p>One thread submits and takes; the engine's thread delivers. The queue holds at most what the
 * sequences may generate.
 */
final class Generation implements AutoCloseable {
    private final Engine engine;
    private final ClientConnection client;
    private final List<GenerationRequest> requests;
    private final BlockingQueue<Message> arrivals = new LinkedBlockingQueue<>();
    private final List<Boolean> open = new ArrayList<>();
    private int openCount;
    private int submitted;

    /** What {@link #next} waits for. */
    sealed interface Message {
        /** The client left: nobody wants the rest. */
        record ClientLeft() implements Message {}
    }

    /**
     * An event of one sequence.
     *
     * @param index the sequence, in the order of the answer's choices
     * @param event what became of it
     */
    record Arrival(int index, GenerationEvent event) implements Message {}

    private Generation(Engine engine, List<GenerationRequest> requests, ClientConnection client) {
        this.engine = engine;
        this.client = client;
        this.requests = requests;
    }

    /** Submits all sequences for the client of a connection. */
    static Generation start(
            Engine engine, List<GenerationRequest> requests, ClientConnection client) {
        Generation generation = new Generation(engine, requests, client);
        requests.forEach(request -> generation.open.add(true));
        generation.openCount = requests.size();
        boolean reads = requests.getFirst().kvTransferParams() != null;
        generation.submit(reads ? 1 : requests.size());
        client.whenGone(() -> generation.arrivals.add(new Message.ClientLeft()));
        return generation;
    }

    private void submit(int end) {
        while (submitted < end) {
            int index = submitted++;
            engine.submit(requests.get(index), event -> arrivals.add(new Arrival(index, event)));
        }
    }

    /** True while a sequence has not ended. */
    boolean isOpen() {
        return openCount > 0;
    }

    /**
     * Waits for the next event of any sequence.
     *
     * @throws ApiException if a sequence failed
     * @throws CloseConnectionException if the client left
     */
    Arrival next() throws InterruptedException {
        return switch (arrivals.take()) {
            case Message.ClientLeft() -> throw new CloseConnectionException("client left");
            case Arrival arrival -> {
                switch (arrival.event()) {
                    case GenerationEvent.Prompt _, GenerationEvent.Tokens _ -> {}
                    case GenerationEvent.Finished _ -> ended(arrival.index());
                    case GenerationEvent.Failed failed -> {
                        ended(arrival.index());
                        throw ApiException.of(failed);
                    }
                }
                submit(requests.size());
                yield arrival;
            }
        };
    }

    private void ended(int index) {
        open.set(index, false);
        openCount--;
    }

    @Override
    public void close() {
        client.forgetWhenGone();
        for (int i = 0; i < submitted; i++) {
            if (open.get(i)) {
                engine.abort(requests.get(i).id());
            }
        }
    }
}
