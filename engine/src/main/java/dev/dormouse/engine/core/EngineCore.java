package dev.dormouse.engine.core;

import dev.dormouse.connector.ConnectorRequest;
import dev.dormouse.connector.ConnectorStep;
import dev.dormouse.connector.RankReports;
import dev.dormouse.connector.ReleaseTimeoutException;
import dev.dormouse.connector.SchedulerConnector;
import dev.dormouse.connector.WorkerReport;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationEvent.FailureKind;
import dev.dormouse.engine.GenerationRequest;
import dev.dormouse.memory.MemoryTag;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The engine's loop: takes messages, asks the scheduler what to compute, has the workers compute
 * it, and hands the results out. Owns all state; used by one thread. Waits, for a bounded time,
 * only where it lets its peers go: in a sleep, and at its end.
 */
final class EngineCore {
    private static final System.Logger LOG = System.getLogger("dormouse.engine");

    /** For messages whose receiver must be found first; after it other engines' leases run out. */
    private static final Duration LAST_MESSAGES_LIMIT = Duration.ofSeconds(2);

    private final Parts parts;
    private final RankReports reports;
    private final Computation computation;
    private boolean opened;
    private boolean closing;
    private @Nullable Throwable failure;

    EngineCore(Parts parts) {
        this.parts = parts;
        this.reports = new RankReports(parts.ranks().workers().size());
        this.computation =
                new Computation(
                        parts.ranks(), parts.scheduler(), parts.counters(), parts.statistics());
    }

    /** What a core works with; wired once. */
    record Parts(
            Inbox inbox,
            Intake intake,
            Lobby lobby,
            Scheduler scheduler,
            RemoteKv remote,
            Ranks ranks,
            @Nullable SchedulerConnector connector,
            Lifecycle life,
            Transitions transitions,
            SleepCoordinator coordinator,
            Counters counters,
            StatisticsBoard statistics) {}

    /** Becomes known to other engines. */
    void open() {
        parts.ranks().workers().forEach(Worker::open);
        opened = true;
        parts.coordinator().publish();
        parts.statistics().refresh();
    }

    /** True once a close was asked for. */
    boolean isClosing() {
        return closing;
    }

    /**
     * One round.
     *
     * @return 0 if there was nothing to do
     */
    int step() {
        int work = takeCommands();
        emptyLobby();
        if (parts.life().phase() == Phase.FAILED) {
            takeReportsIfPossible();
            return work + (parts.transitions().advance() ? 1 : 0);
        }
        // Also asleep: peers go on sending messages, which pile up if nobody takes them.
        boolean exchange = parts.connector() != null;
        if (exchange) {
            work += takeReports();
        }
        Batch batch = parts.scheduler().schedule();
        if (exchange) {
            giveOrders();
        }
        if (!batch.isEmpty()) {
            computation.run(batch);
            work++;
        }
        work += parts.transitions().advance() ? 1 : 0;
        parts.statistics().refresh();
        return work;
    }

    /**
     * As {@link #step}, but an error that the loop cannot explain ends the service instead of the
     * loop. Does not throw.
     */
    int stepOrFail() {
        try {
            return step();
        } catch (RuntimeException | Error e) {
            fail(e);
            return 1; // transitions that wait are answered at once, not after the next message
        }
    }

    /** The first error that ended the service, or null. */
    @Nullable Throwable failure() {
        return failure;
    }

    /** What the loop waits for when a round finds nothing to do. */
    enum Expectation {
        /** A read that fills blocks of this engine, for a client that waits. */
        READ,
        /** Another engine that reads, or something else that ends soon. */
        PEER,
        /** Messages of other engines, some day. */
        CONNECTION,
        /** The same, while there is no KV cache that they could be about. */
        LITTLE,
        /** Nothing but messages to the inbox. */
        NOTHING
    }

    Expectation expectation() {
        if (parts.connector() == null) {
            return Expectation.NOTHING;
        }
        if (!canTell()) {
            return Expectation.LITTLE;
        }
        if (parts.remote().isReading()) {
            return Expectation.READ;
        }
        return parts.remote().holdsNothing() && !parts.transitions().isDraining()
                ? Expectation.CONNECTION
                : Expectation.PEER;
    }

    /**
     * Ends everything, and answers whoever still waits. Finishes all steps. Other engines are told
     * what they need not hold any more before the means to tell them are gone.
     */
    void close() {
        Cleanup cleanup = new Cleanup();
        boolean speaks = opened && canTell();
        cleanup.run(parts.transitions()::close);
        if (parts.connector() != null) {
            cleanup.run(parts.connector()::withdraw);
        }
        cleanup.run(parts.scheduler()::abortAll);
        cleanup.run(this::emptyLobby);
        for (Command command : parts.inbox().close()) {
            cleanup.run(() -> refuse(command));
        }
        if (speaks) {
            cleanup.run(this::giveOrders);
            for (Worker worker : parts.ranks().workers()) {
                cleanup.run(() -> sendLastMessages(worker));
            }
        }
        cleanup.run(parts.ranks()::close);
        if (parts.connector() != null) {
            cleanup.run(parts.connector()::close);
        }
        cleanup.finish();
    }

    /**
     * After an error that the loop cannot explain: ends all requests, and refuses what comes. Does
     * not throw.
     */
    void fail(Throwable cause) {
        failure = failure == null ? cause : failure;
        LOG.log(Level.ERROR, "engine failed", cause);
        Cleanup cleanup = new Cleanup();
        cleanup.run(parts.transitions()::fail);
        cleanup.run(() -> parts.scheduler().failAll("the engine has failed; restart it"));
        cleanup.run(this::emptyLobby);
        cleanup.run(parts.statistics()::refresh);
        try {
            cleanup.finish();
        } catch (RuntimeException | Error e) {
            LOG.log(Level.ERROR, "could not fail all requests", e);
        }
    }

    /** True while messages to other engines leave: none do that are begun without a KV cache. */
    private boolean canTell() {
        return parts.connector() != null
                && parts.coordinator().isMapped(MemoryTag.KV_CACHE)
                && parts.life().phase() != Phase.FAILED;
    }

    private static void sendLastMessages(Worker worker) {
        try {
            worker.releaseKvCaches(LAST_MESSAGES_LIMIT);
        } catch (ReleaseTimeoutException e) {
            LOG.log(Level.WARNING, "closing with something under way: {0}", e.getMessage());
        }
    }

    private int takeCommands() {
        List<Command> commands = parts.inbox().takeAll();
        Cleanup cleanup = new Cleanup();
        for (Command command : commands) {
            cleanup.run(() -> take(command));
        }
        cleanup.finish();
        return commands.size();
    }

    private void take(Command command) {
        try {
            switch (command) {
                case Command.Submit submit -> submit(submit);
                case Command.Decline decline -> decline(decline);
                case Command.Abort abort -> abort(abort.requestId());
                case Command.Change change -> parts.transitions().enqueue(change);
                case Command.Close _ -> closing = true;
            }
        } catch (RuntimeException | Error e) {
            answerFailure(command, e);
            throw e;
        }
    }

    /** Whoever sent the command waits for an answer, and the engine is about to fail. */
    private void answerFailure(Command command, Throwable cause) {
        switch (command) {
            case Command.Submit submit -> {
                // A live sequence fails with all others.
                if (parts.scheduler().find(submit.request().id()) == null) {
                    Sequence.tellRefused(
                            submit.listener(),
                            submit.request().id(),
                            FailureKind.INTERNAL,
                            "the engine failed with this request: " + cause);
                }
            }
            case Command.Change change -> change.outcome().completeExceptionally(cause);
            case Command.Decline _, Command.Abort _, Command.Close _ -> {}
        }
    }

    private void submit(Command.Submit submit) {
        GenerationRequest request = submit.request();
        GenerationEvent.Failed refusal = parts.life().refusal();
        String fault = parts.intake().fault(request);
        if (fault != null) {
            refuse(submit, new GenerationEvent.Failed(FailureKind.INVALID_REQUEST, fault));
        } else if (refusal == null) {
            parts.scheduler().add(parts.intake().accept(request, submit.listener()));
        } else if (parts.life().holdsRequests()) {
            parts.lobby().enter(submit);
        } else {
            refuse(submit, refusal);
        }
    }

    /** Takes in who waited for the engine to wake, or sends them away if it never will. */
    private void emptyLobby() {
        GenerationEvent.Failed refusal = parts.life().refusal();
        if (refusal != null && parts.life().holdsRequests()) {
            return;
        }
        Cleanup cleanup = new Cleanup();
        for (Command.Submit submit : parts.lobby().leave()) {
            cleanup.run(() -> admit(submit, refusal));
        }
        cleanup.finish();
    }

    private void admit(Command.Submit submit, GenerationEvent.@Nullable Failed refusal) {
        if (refusal != null) {
            refuse(submit, refusal);
            return;
        }
        try {
            Sequence sequence = parts.intake().accept(submit.request(), submit.listener());
            // Nobody renewed its lease meanwhile: what it would read may be another prompt's.
            sequence.forbidRemoteRead();
            parts.scheduler().add(sequence);
        } catch (RuntimeException | Error e) {
            answerFailure(submit, e);
            throw e;
        }
    }

    private void abort(String requestId) {
        Sequence sequence = parts.scheduler().find(requestId);
        Command.@Nullable Submit waiting = parts.lobby().remove(requestId);
        if (sequence != null) {
            parts.scheduler().abort(sequence);
        } else if (waiting != null) {
            tellProducer(parts.intake().identify(waiting.request()));
            parts.intake().accept(waiting.request(), waiting.listener()).tellAborted(null);
        }
    }

    private void refuse(Command command) {
        switch (command) {
            case Command.Submit submit ->
                    refuse(submit, Lifecycle.unavailable("the engine is closed"));
            case Command.Change change -> Transitions.refuseClosed(change);
            case Command.Decline decline -> decline.taken().run();
            case Command.Abort _, Command.Close _ -> {}
        }
    }

    private void refuse(Command.Submit submit, GenerationEvent.Failed why) {
        tellProducer(parts.intake().identify(submit.request()));
        Sequence.tellRefused(submit.listener(), submit.request().id(), why.kind(), why.message());
    }

    private void decline(Command.Decline decline) {
        decline.taken().run();
        tellProducer(parts.intake().identify(decline.params()));
    }

    /**
     * Tells the engine that holds a request's prompt that nobody will read it. While messages to
     * other engines cannot leave they would only gather here, and the lease runs out meanwhile.
     */
    private void tellProducer(ConnectorRequest request) {
        if (canTell()) {
            parts.remote().onRefused(request);
        }
    }

    private int takeReports() {
        List<WorkerReport> ofRanks = new ArrayList<>();
        boolean empty = true;
        for (Worker worker : parts.ranks().workers()) {
            WorkerReport report = worker.poll();
            empty &= report.isEmpty();
            ofRanks.add(report);
        }
        if (empty) {
            return 0;
        }
        WorkerReport merged = reports.merge(ofRanks);
        parts.statistics().add(merged.statistics());
        parts.scheduler().onReport(merged).forEach(computation::takeFirstToken);
        return 1;
    }

    /** An engine that has failed serves nobody, but must not drown in messages either. */
    private void takeReportsIfPossible() {
        if (parts.connector() == null) {
            return;
        }
        for (Worker worker : parts.ranks().workers()) {
            try {
                var _ = worker.poll();
            } catch (RuntimeException e) {
                LOG.log(Level.DEBUG, "a rank of the failed engine cannot be polled", e);
            }
        }
    }

    private void giveOrders() {
        if (parts.connector() != null) {
            ConnectorStep step = parts.connector().step();
            parts.ranks().workers().forEach(worker -> worker.start(step));
        }
    }
}
