package dev.dormouse.connector;

import java.io.IOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * Has all readers of a registration end before its pages go: asks each until it says that it is
 * done. Used by the engine's thread, which never waits in it.
 *
 * <p>It is complete only if everyone who was given the payloads is known and has answered. Who is
 * not, or does not, is waited for by other means: a lease that nobody renews.
 */
final class Revoker {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");
    private static final Duration ASK_LIMIT = Duration.ofSeconds(5);
    private static final long BUSY_PAUSE_NANOS = Duration.ofMillis(5).toNanos();
    private static final long LOST_PAUSE_NANOS = Duration.ofMillis(500).toNanos();

    /** What is known of one reader. */
    private static final class Target {
        private @Nullable CompletableFuture<DemandReply> asking;
        private long nextNanos;
        private boolean done;
    }

    private final SideChannel.Dialer dialer;
    private final HandshakeThreads threads;
    private final Map<Subscription.Reader, Target> targets = new HashMap<>();
    private @Nullable Revocation revocation;
    private boolean allKnown;

    Revoker(SideChannel.Dialer dialer, HandshakeThreads threads) {
        this.dialer = dialer;
        this.threads = threads;
    }

    /**
     * Begins.
     *
     * @param readers who must say that they are done
     * @param allKnown whether they are all that can read
     */
    void begin(Revocation what, Set<Subscription.Reader> readers, boolean allKnown, long nowNanos) {
        end();
        this.revocation = what;
        this.allKnown = allKnown;
        for (Subscription.Reader reader : readers) {
            Target target = new Target();
            target.nextNanos = nowNanos;
            targets.put(reader, target);
        }
        LOG.log(
                System.Logger.Level.INFO,
                "revoking: epoch={0} readers={1} all_known={2}",
                Long.toString(what.epoch()),
                readers.size(),
                allKnown);
    }

    /** It is over, or not wanted any more. */
    void end() {
        revocation = null;
        targets.clear();
    }

    boolean isActive() {
        return revocation != null;
    }

    /** True if nobody can read through the registration any more. */
    boolean isComplete() {
        return revocation != null
                && allKnown
                && targets.values().stream().allMatch(target -> target.done);
    }

    /** Takes answers, and asks again. */
    void progress(long nowNanos) {
        Revocation demand = revocation;
        if (demand != null) {
            targets.forEach((reader, target) -> progress(demand, reader, target, nowNanos));
        }
    }

    private void progress(
            Revocation demand, Subscription.Reader reader, Target target, long nowNanos) {
        CompletableFuture<DemandReply> asking = target.asking;
        if (target.done || (asking != null && !asking.isDone())) {
            return;
        }
        if (asking != null) {
            target.asking = null;
            target.done = isDone(asking, reader);
            target.nextNanos =
                    nowNanos
                            + (asking.isCompletedExceptionally()
                                    ? LOST_PAUSE_NANOS
                                    : BUSY_PAUSE_NANOS);
        } else if (nowNanos - target.nextNanos >= 0) {
            target.asking = ask(demand, reader);
        }
    }

    /**
     * A reader that another process of the same engine has replaced cannot read any more either.
     * Any other engine at its address says nothing about it: the address is the reader's own view.
     */
    private static boolean isDone(
            CompletableFuture<DemandReply> asking, Subscription.Reader reader) {
        if (asking.isCompletedExceptionally()) {
            LOG.log(
                    System.Logger.Level.DEBUG,
                    "revocation not answered: reader={0} address={1}: {2}",
                    Excerpt.of(reader.engineId()),
                    reader.address(),
                    asking.exceptionNow().getMessage());
            return false;
        }
        return asking.join().ends(reader.engineId(), reader.instanceId());
    }

    private CompletableFuture<DemandReply> ask(Revocation demand, Subscription.Reader reader) {
        CompletableFuture<DemandReply> answer = new CompletableFuture<>();
        try {
            threads.execute(
                    reader.address(),
                    () -> {
                        try (SideChannel.Conversation conversation =
                                dialer.dial(reader.address(), ASK_LIMIT)) {
                            answer.complete(
                                    DemandReply.decode(conversation.ask(demand.encode()).body()));
                        } catch (IOException | RuntimeException | Error e) {
                            answer.completeExceptionally(e);
                        }
                    });
        } catch (RejectedExecutionException e) {
            answer.completeExceptionally(e);
        }
        return answer;
    }
}
