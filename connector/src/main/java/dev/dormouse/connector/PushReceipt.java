package dev.dormouse.connector;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** One request of this rank that a holder was asked to write. State only. */
final class PushReceipt {
    private static final long ASK_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long SOON_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

    /** How far one rank of the holder is. */
    enum RankState {
        /** It has said nothing. */
        WAITED_FOR,
        /** It has written. */
        DONE,
        /** It has not written, and will not. */
        CLEAR
    }

    private final ReadOrder order;
    private final RemoteSource decoder;
    private final LoadedEngine holder;
    private final RegistrationIdentity identity;
    private final long deadlineNanos;
    private final Map<String, RankState> ranks = new HashMap<>();
    private @Nullable Failure failure;
    private boolean abandoned;
    private boolean released;
    private boolean missed;
    private boolean lost;
    private long askNanos;
    private long pauseNanos = FIRST_PAUSE_NANOS;
    private boolean saidNotYet;
    private long notYetNanos;

    /**
     * A request that is waited for.
     *
     * @param decoder this engine's end of it, as the holder was told
     * @param deadlineNanos after which it is not waited for any more
     */
    PushReceipt(
            ReadOrder order,
            RemoteSource decoder,
            LoadedEngine holder,
            long deadlineNanos,
            long nowNanos) {
        this.order = order;
        this.decoder = decoder;
        this.holder = holder;
        this.identity = holder.identity();
        this.deadlineNanos = deadlineNanos;
        this.askNanos = nowNanos + ASK_NANOS;
        holder.ranks().forEach(rank -> ranks.put(rank.peer().agentName(), RankState.WAITED_FOR));
    }

    ReadOrder order() {
        return order;
    }

    /** This engine's end of it. */
    RemoteSource decoder() {
        return decoder;
    }

    LoadedEngine holder() {
        return holder;
    }

    /** The registration of the holder with which it was asked. */
    RegistrationIdentity identity() {
        return identity;
    }

    long deadlineNanos() {
        return deadlineNanos;
    }

    Map<String, RankState> ranks() {
        return ranks;
    }

    /** Why it has failed, or null. */
    @Nullable Failure failure() {
        return failure;
    }

    /** It is not waited for any more. */
    void fail(Failure reason, long nowNanos) {
        failure = reason;
        askNanos = nowNanos;
        pauseNanos = FIRST_PAUSE_NANOS;
    }

    /** True once: at the first call. */
    boolean abandon() {
        boolean first = !abandoned;
        abandoned = true;
        return first;
    }

    boolean wasAbandoned() {
        return abandoned;
    }

    /** A rank of the holder has ended; the first word counts. */
    void advance(String agent, RankState to) {
        ranks.computeIfPresent(agent, (_, state) -> state == RankState.WAITED_FOR ? to : state);
    }

    boolean all(RankState... states) {
        return Arrays.asList(states).containsAll(ranks.values());
    }

    /** The holder says that a write is under way, or that it does not know yet. */
    void sayNotYet(long nowNanos) {
        saidNotYet = true;
        notYetNanos = nowNanos;
    }

    /** True if it has said so within {@code nanos}. */
    boolean saidNotYet(long nanos, long nowNanos) {
        return saidNotYet && nowNanos - notYetNanos < nanos;
    }

    /** True if all ranks of the holder have let go of it. */
    boolean isReleased() {
        return released;
    }

    /** True if the holder has it no more, although it has not been written. */
    boolean isLost() {
        return lost;
    }

    /** True if the holder shall be asked, which vLLM's cannot be. */
    boolean isDue(long nowNanos) {
        return identity.instanceId() != null && nowNanos - askNanos >= 0;
    }

    /** It is being asked. */
    void asked(long nowNanos) {
        askNanos = nowNanos + (failure == null ? ASK_NANOS : pauseNanos);
        pauseNanos = Math.min(2 * pauseNanos, ASK_NANOS);
    }

    /**
     * The holder said whether it holds the request. It holds none that it has written, so it counts
     * only if it says no twice, and no word of a write came in between.
     */
    void hear(HoldAnswer answer, long nowNanos) {
        boolean gone = !answer.promises(identity);
        lost |= gone && missed;
        if (gone && !missed) {
            askNanos = nowNanos + SOON_NANOS;
        }
        missed = gone;
    }

    /** The holder said whether it has let go of a request that is not waited for any more. */
    void hear(DemandReply answer, long nowNanos) {
        String engineId = order.remote().engineId();
        if (answer.ends(engineId, String.valueOf(identity.instanceId()))) {
            released = true;
        } else if (answer.engineId().equals(engineId)) {
            sayNotYet(nowNanos);
        }
    }
}
