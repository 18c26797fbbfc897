package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Brings together, on one rank of a holder, the requests that are held and the registrations of
 * engines that wait for one, whichever comes first.
 *
 * <p>An engine of this product names the request that it means. One of vLLM does not: its own id
 * must be the same, or the same without the suffix of a dash and eight hexadecimal digits that
 * either engine appends to the router's id; if that fits more than one request, it fits none.
 *
 * <p>What a registration costs does not depend on how many others wait.
 */
final class PushMatches {
    /** More than any engine has requests. */
    static final int MAX_STAGED = 1 << 14;

    /** Of all that waits: ten times what so many usual registrations have. */
    static final long MAX_STAGED_BYTES = 64L << 20;

    /** Registrations that may mean the same request. */
    static final int MAX_ALIKE = 16;

    /** How many of each kind one sweep looks at. */
    static final int SWEEP = 256;

    private static final int MAX_CLOSED = 1 << 16;

    /** More than any engine has ranks. */
    private static final int MAX_SENDERS = 1_024;

    /** A registration that is not over, and the agents that have sent it. */
    private static final class Entry {
        private final PushRegistration registration;
        private final long arrivedNanos;
        private final Set<String> senders = new LinkedHashSet<>();
        private RemoteLease lease;
        private String requestId = "";

        private Entry(PushRegistration registration, String sender, long arrivedNanos) {
            this.registration = registration;
            this.arrivedNanos = arrivedNanos;
            this.lease = registration.decoder().lease();
            senders.add(sender);
        }
    }

    /**
     * A registration and its request.
     *
     * @param requestId this engine's
     * @param blocks of the whole prompt
     * @param sender the agent that sent the registration first
     * @param arrivedNanos when it came
     */
    record Match(
            PushRegistration registration,
            String sender,
            String requestId,
            List<Integer> blocks,
            long arrivedNanos) {}

    private final long timeoutNanos;
    private final LinkedHashMap<String, List<Integer>> held = new LinkedHashMap<>();
    private final LinkedHashMap<RemoteSource.Key, Entry> staged = new LinkedHashMap<>();
    private final Map<RemoteSource.Key, Entry> active = new HashMap<>();

    /** Whose write an active request is. */
    private final Map<String, RemoteSource.Key> serving = new HashMap<>();

    private final Map<String, Set<String>> heldByStem = new HashMap<>();
    private final Map<String, Set<Entry>> stagedByName = new HashMap<>();
    private final Map<String, Set<Entry>> stagedByStem = new HashMap<>();
    private long stagedBytes;

    /** What ended, so that another rank's copy of the registration begins nothing. */
    private final SpentHandOvers closed;

    /**
     * Nothing is known.
     *
     * @param timeoutNanos how long a registration waits for its request
     */
    PushMatches(long timeoutNanos) {
        this.timeoutNanos = timeoutNanos;
        this.closed = new SpentHandOvers(2 * timeoutNanos, MAX_CLOSED);
    }

    /** A request is held from now on; the registration that waited for it, or null. */
    @Nullable Match hold(String requestId, List<Integer> blocks) {
        held.put(requestId, blocks);
        heldByStem.computeIfAbsent(stem(requestId), _ -> new HashSet<>()).add(requestId);
        for (Entry named : stagedByName.getOrDefault(requestId, Set.of())) {
            return match(named, requestId);
        }
        Entry fitting = null;
        for (Entry each : stagedByStem.getOrDefault(stem(requestId), Set.of())) {
            if (requestId.equals(requestOf(each.registration))) {
                if (fitting != null) {
                    return null;
                }
                fitting = each;
            }
        }
        return fitting == null ? null : match(fitting, requestId);
    }

    /**
     * An engine waits for a request. Nothing happens if that is known already, or over, or if
     * {@linkplain #isFull too many} wait.
     *
     * @return the request, if it is held; otherwise the registration waits, and null is returned
     */
    @Nullable Match register(PushRegistration registration, String sender, long nowNanos) {
        if (isKnown(registration.decoder())) {
            return null;
        }
        Entry entry = new Entry(registration, sender, nowNanos);
        String requestId = requestOf(registration);
        if (requestId != null) {
            return match(entry, requestId);
        }
        if (!isFull(registration)) {
            staged.put(registration.decoder().key(), entry);
            stagedBytes += registration.weightBytes();
            index(registration)
                    .computeIfAbsent(indexKey(registration), _ -> new LinkedHashSet<>())
                    .add(entry);
        }
        return null;
    }

    /**
     * Another agent has sent what is known already, as the ranks of an engine do.
     *
     * @return false if it says something else than the first
     */
    boolean registerAgain(PushRegistration registration, String sender) {
        Entry entry = entry(registration.decoder());
        if (entry == null || !entry.registration.asksTheSame(registration)) {
            return false;
        }
        if (entry.senders.size() < MAX_SENDERS) {
            entry.senders.add(sender);
        }
        RemoteLease lease = registration.decoder().lease();
        if (lease.deadlineSeconds() < entry.lease.deadlineSeconds()) {
            entry.lease = lease;
        }
        return true;
    }

    /** The agents that have sent a registration. */
    Set<String> senders(RemoteSource decoder) {
        Entry entry = entry(decoder);
        return entry == null ? Set.of() : entry.senders;
    }

    /** For how long all of them wait. */
    RemoteLease lease(RemoteSource decoder) {
        Entry entry = entry(decoder);
        return entry == null ? decoder.lease() : entry.lease;
    }

    /** True if the registration cannot wait for its request, since too many do. */
    boolean isFull(PushRegistration registration) {
        return staged.size() >= MAX_STAGED
                || stagedBytes + registration.weightBytes() > MAX_STAGED_BYTES
                || index(registration).getOrDefault(indexKey(registration), Set.of()).size()
                        >= MAX_ALIKE;
    }

    /** True if a registration is over. */
    boolean isClosed(RemoteSource decoder) {
        return closed.contains(decoder);
    }

    /** True if a registration is waiting, or being served. */
    boolean isOpen(RemoteSource decoder) {
        return entry(decoder) != null;
    }

    /** True if a registration is waiting, being served, or over. */
    boolean isKnown(RemoteSource decoder) {
        return isOpen(decoder) || closed.contains(decoder);
    }

    /** True if a request is held and nobody has it yet. */
    boolean isFree(String requestId) {
        return held.containsKey(requestId);
    }

    /** True from the match on, until it is {@linkplain #close closed}. */
    boolean isActive(RemoteSource decoder) {
        return active.containsKey(decoder.key());
    }

    /** True if a registration has the request. */
    boolean isServing(String requestId) {
        return serving.containsKey(requestId);
    }

    /** The requests that are being served. */
    Set<String> activeRequests() {
        return Set.copyOf(serving.keySet());
    }

    /**
     * A registration is over: served, given up, or taken back.
     *
     * @return the request that it had, or null
     */
    @Nullable String close(RemoteSource decoder, long nowNanos) {
        closed.add(decoder, nowNanos);
        Entry waiting = staged.remove(decoder.key());
        if (waiting != null) {
            unstage(waiting);
        }
        Entry served = active.remove(decoder.key());
        if (served == null) {
            return null;
        }
        serving.remove(served.requestId, decoder.key());
        return served.requestId;
    }

    /**
     * Forgets requests that are not held any more. Looks at {@link #SWEEP} requests and as many
     * registrations, the next time at those behind them.
     *
     * @param isHeld whether a request is still held
     * @param isComing whether a request may yet be held
     * @return registrations that wait in vain; they are closed
     */
    List<PushRegistration> sweep(
            Predicate<String> isHeld, Predicate<String> isComing, long nowNanos) {
        closed.forget(nowNanos);
        for (int left = Math.min(SWEEP, held.size()); left > 0; left--) {
            Map.Entry<String, List<Integer>> next = held.pollFirstEntry();
            if (isHeld.test(next.getKey())) {
                held.putLast(next.getKey(), next.getValue());
            } else {
                unindex(next.getKey());
            }
        }
        List<PushRegistration> vain = new ArrayList<>();
        for (int left = Math.min(SWEEP, staged.size()); left > 0; left--) {
            Map.Entry<RemoteSource.Key, Entry> next = staged.pollFirstEntry();
            Entry waiting = next.getValue();
            String named = waiting.registration.holder().requestId();
            if (nowNanos - waiting.arrivedNanos >= timeoutNanos
                    || (!named.isEmpty() && !isComing.test(named))) {
                unstage(waiting);
                closed.add(waiting.registration.decoder(), nowNanos);
                vain.add(waiting.registration);
            } else {
                staged.putLast(next.getKey(), waiting);
            }
        }
        return vain;
    }

    /** Nothing is held any more; returns the registrations that waited, which are closed. */
    List<PushRegistration> clear(long nowNanos) {
        held.clear();
        heldByStem.clear();
        List<PushRegistration> waiting =
                staged.values().stream().map(entry -> entry.registration).toList();
        waiting.forEach(registration -> close(registration.decoder(), nowNanos));
        return waiting;
    }

    private Match match(Entry found, String requestId) {
        RemoteSource.Key key = found.registration.decoder().key();
        if (staged.remove(key) != null) {
            unstage(found);
        }
        found.requestId = requestId;
        active.put(key, found);
        serving.put(requestId, key);
        List<Integer> blocks = held.remove(requestId);
        unindex(requestId);
        return new Match(
                found.registration,
                found.senders.iterator().next(),
                requestId,
                blocks == null ? List.of() : blocks,
                found.arrivedNanos);
    }

    private @Nullable Entry entry(RemoteSource decoder) {
        Entry entry = active.get(decoder.key());
        return entry != null ? entry : staged.get(decoder.key());
    }

    /** The one held request that a registration means, or null. */
    private @Nullable String requestOf(PushRegistration registration) {
        String named = registration.holder().requestId();
        if (!named.isEmpty()) {
            return held.containsKey(named) ? named : null;
        }
        String id = registration.decoder().requestId();
        if (held.containsKey(id)) {
            return id;
        }
        Set<String> fitting = heldByStem.getOrDefault(stem(id), Set.of());
        return fitting.size() == 1 ? fitting.iterator().next() : null;
    }

    private void unindex(String requestId) {
        Set<String> alike = heldByStem.get(stem(requestId));
        if (alike != null && alike.remove(requestId) && alike.isEmpty()) {
            heldByStem.remove(stem(requestId));
        }
    }

    private void unstage(Entry entry) {
        stagedBytes -= entry.registration.weightBytes();
        String key = indexKey(entry.registration);
        Set<Entry> alike = index(entry.registration).get(key);
        if (alike != null && alike.remove(entry) && alike.isEmpty()) {
            index(entry.registration).remove(key);
        }
    }

    /** By what it waits for: others there may mean the same request. */
    private Map<String, Set<Entry>> index(PushRegistration registration) {
        return registration.holder().requestId().isEmpty() ? stagedByStem : stagedByName;
    }

    private static String indexKey(PushRegistration registration) {
        String named = registration.holder().requestId();
        return named.isEmpty() ? stem(registration.decoder().requestId()) : named;
    }

    private static String stem(String id) {
        int dash = id.length() - 9;
        if (dash < 0 || id.charAt(dash) != '-') {
            return id;
        }
        for (int i = dash + 1; i < id.length(); i++) {
            if (!isHexadecimal(id.charAt(i))) {
                return id;
            }
        }
        return id.substring(0, dash);
    }

    private static boolean isHexadecimal(char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    }
}
