package dev.dormouse.connector;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * All that a reader knows of one peer engine. State only; {@link RemoteEngines} drives it.
 *
 * <p>In the usual order: reads wait, a {@link Handshake} runs, its result waits as {@link
 * FetchedEngine} until no read uses what it replaces, then it is loaded and the reads start.
 */
final class RemoteEngine {
    private static final int MAX_RETIRED = 16;

    private final String engineId;
    private final SideChannelAddress address;
    private final BackOff backOff = new BackOff();
    private final Deque<String> retired = new ArrayDeque<>();

    /** Reads that have not started, oldest first. */
    final List<WaitingOrder> waiting = new ArrayList<>();

    /** Leases that were renewed there. */
    final Renewals renewals = new Renewals();

    @Nullable Handshake handshake;
    @Nullable FetchedEngine fetched;
    @Nullable LoadedEngine loaded;

    /** True once another engine answered at this engine's address. */
    boolean replaced;

    long lastUsedNanos;

    private boolean invalid;
    private @Nullable RegistrationIdentity invalidated;

    RemoteEngine(String engineId, SideChannelAddress address, long nowNanos) {
        this.engineId = engineId;
        this.address = address;
        this.lastUsedNanos = nowNanos;
    }

    String engineId() {
        return engineId;
    }

    /** Where it is asked. */
    SideChannelAddress address() {
        return address;
    }

    /** What reads may go through now, or null. */
    @Nullable LoadedEngine usable() {
        return invalid ? null : loaded;
    }

    /** What reads of a request that names this tensor parallel size may go through now, or null. */
    @Nullable LoadedEngine usable(int tpSize) {
        LoadedEngine usable = usable();
        return usable != null && usable.mapping().remoteSize() == tpSize ? usable : null;
    }

    /** The transport has lost what is loaded; it is dropped once no read uses it. */
    void invalidate(long nowNanos) {
        if (loaded != null && !invalid) {
            invalid = true;
            invalidated = loaded.identity();
            backOff.strike(nowNanos);
        }
    }

    /**
     * The transport has lost what is loaded, by its owner's wish as a rule, and nobody waits: it is
     * dropped once no read uses it, and asked again when it is needed.
     */
    void giveUp() {
        invalid = true;
    }

    /** What the revocation names is not used any more, and dropped once no read uses it. */
    void revoke(Revocation revocation) {
        handshake = null; // it may have begun before, and bring what is revoked
        waiting.forEach(WaitingOrder::forgetAnswers);
        if (fetched != null && revocation.covers(fetched.identity())) {
            fetched = null;
        }
        if (holds(revocation)) {
            invalid = true;
        }
    }

    /** True as long as what the revocation names is loaded. */
    boolean holds(Revocation revocation) {
        return loaded != null
                && engineId.equals(revocation.engineId())
                && revocation.covers(loaded.identity());
    }

    boolean isInvalid() {
        return invalid;
    }

    void setLoaded(@Nullable LoadedEngine engine) {
        loaded = engine;
        invalid = false;
        replaced = false;
    }

    /** True if a handshake for {@code request} must wait, since the peer was just found invalid. */
    boolean mustBackOff(@Nullable RemoteSource request, long nowNanos) {
        RegistrationIdentity gone = invalidated;
        if (gone == null || !backOff.isActive(nowNanos)) {
            return false;
        }
        boolean newer =
                request != null
                        && (request.epoch() > gone.epoch()
                                || (request.instanceId() != null
                                        && !request.instanceId().equals(gone.instanceId())));
        return !newer;
    }

    /** The process that answers at {@code address} is not {@code instanceId}: that one is gone. */
    void retire(SideChannelAddress address, @Nullable String instanceId) {
        if (instanceId != null && !retired.contains(instanceId + "@" + address)) {
            retired.addLast(instanceId + "@" + address);
            if (retired.size() > MAX_RETIRED) {
                retired.removeFirst();
            }
        }
    }

    boolean isRetired(SideChannelAddress address, @Nullable String instanceId) {
        return instanceId != null && retired.contains(instanceId + "@" + address);
    }

    /** What is pending, for a message. */
    List<String> describe(long nowNanos) {
        List<String> pending = new ArrayList<>();
        Handshake running = handshake;
        if (running != null) {
            pending.add(
                    "handshake with "
                            + Excerpt.of(engineId)
                            + " at "
                            + running.address()
                            + " for "
                            + Duration.ofNanos(nowNanos - running.startedNanos()));
        }
        for (WaitingOrder read : waiting) {
            pending.add(
                    "request "
                            + read.order().requestId()
                            + " waits for "
                            + Excerpt.of(engineId)
                            + " for "
                            + Duration.ofNanos(nowNanos - read.orderedNanos()));
        }
        return pending;
    }

    /** True if nothing is under way. */
    boolean isIdle() {
        return waiting.isEmpty()
                && handshake == null
                && fetched == null
                && (loaded == null || loaded.transfersInFlight() == 0);
    }

    /** True if there is nothing worth remembering. */
    boolean isForgettable(long nowNanos) {
        return isIdle() && loaded == null && retired.isEmpty() && backOff.isForgiven(nowNanos);
    }
}
