package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Brings together, on one rank of a holder, the requests that are held and the registrations of
 * engines that wait for one, whichever comes first.
 *
 * <p>An engine of this product names the request that it means. One of vLLM does not: its own id
 * must be the same, or the same without the suffix of a dash and eight hexadecimal digits that
 * either engine appends to the router's id; if that fits more than one request, it fits none.
 */
final class PushMatches {
    /** More than any engine has requests. */
    private static final int MAX_STAGED = 1 << 14;

    private static final int MAX_CLOSED = 1 << 16;

    private static final Pattern SUFFIX = Pattern.compile("-[0-9a-fA-F]{8}$");

    /** A registration that waits for its request. */
    private record Staged(PushRegistration registration, String sender, long arrivedNanos) {}

    /**
     * A registration and its request.
     *
     * @param requestId this engine's
     * @param blocks of the whole prompt
     * @param sender the agent that sent the registration
     * @param arrivedNanos when it came
     */
    record Match(
            PushRegistration registration,
            String sender,
            String requestId,
            List<Integer> blocks,
            long arrivedNanos) {}

    private final long timeoutNanos;
    private final Map<String, List<Integer>> held = new HashMap<>();
    private final Map<RemoteSource.Key, Staged> staged = new LinkedHashMap<>();
    private final Map<RemoteSource.Key, String> active = new HashMap<>();

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
        List<Staged> fitting = new ArrayList<>();
        for (Staged candidate : staged.values()) {
            if (requestId.equals(requestOf(candidate.registration()))) {
                fitting.add(candidate);
            }
        }
        return fitting.size() == 1 ? match(fitting.getFirst(), requestId) : null;
    }

    /**
     * An engine waits for a request. Nothing happens if that is known already, or over.
     *
     * @return the request, if it is held; otherwise the registration waits, and null is returned
     */
    @Nullable Match register(PushRegistration registration, String sender, long nowNanos) {
        RemoteSource.Key key = registration.decoder().key();
        if (isKnown(registration.decoder())) {
            return null;
        }
        String requestId = requestOf(registration);
        if (requestId != null) {
            return match(new Staged(registration, sender, nowNanos), requestId);
        }
        if (staged.size() < MAX_STAGED) {
            staged.put(key, new Staged(registration, sender, nowNanos));
        }
        return null;
    }

    /** True if no further registration can wait for its request. */
    boolean isFull() {
        return staged.size() >= MAX_STAGED;
    }

    /** True if a registration is over. */
    boolean isClosed(RemoteSource decoder) {
        return closed.contains(decoder);
    }

    /** True if a registration is waiting, being served, or over. */
    boolean isKnown(RemoteSource decoder) {
        return active.containsKey(decoder.key())
                || staged.containsKey(decoder.key())
                || closed.contains(decoder);
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
        return active.containsValue(requestId);
    }

    /** The requests that are being served. */
    Set<String> activeRequests() {
        return Set.copyOf(active.values());
    }

    /** A registration is over: served, given up, or taken back. */
    void close(RemoteSource decoder, long nowNanos) {
        staged.remove(decoder.key());
        active.remove(decoder.key());
        closed.add(decoder, nowNanos);
    }

    /**
     * Forgets requests that are not held any more.
     *
     * @param isHeld whether a request is still held
     * @param isComing whether a request may yet be held
     * @return registrations that wait in vain; they are closed
     */
    List<PushRegistration> sweep(
            Predicate<String> isHeld, Predicate<String> isComing, long nowNanos) {
        closed.forget(nowNanos);
        held.keySet().removeIf(id -> !isHeld.test(id));
        List<PushRegistration> vain = new ArrayList<>();
        for (Iterator<Staged> each = staged.values().iterator(); each.hasNext(); ) {
            Staged waiting = each.next();
            String named = waiting.registration().holder().requestId();
            if (nowNanos - waiting.arrivedNanos() >= timeoutNanos
                    || (!named.isEmpty() && !isComing.test(named))) {
                each.remove();
                closed.add(waiting.registration().decoder(), nowNanos);
                vain.add(waiting.registration());
            }
        }
        return vain;
    }

    /** Nothing is held any more; returns the registrations that waited, which are closed. */
    List<PushRegistration> clear(long nowNanos) {
        held.clear();
        List<PushRegistration> waiting =
                staged.values().stream().map(Staged::registration).toList();
        waiting.forEach(registration -> close(registration.decoder(), nowNanos));
        return waiting;
    }

    private Match match(Staged found, String requestId) {
        RemoteSource.Key key = found.registration().decoder().key();
        staged.remove(key);
        active.put(key, requestId);
        List<Integer> blocks = held.remove(requestId);
        return new Match(
                found.registration(),
                found.sender(),
                requestId,
                blocks == null ? List.of() : blocks,
                found.arrivedNanos());
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
        List<String> fitting =
                held.keySet().stream().filter(each -> stripped(each).equals(stripped(id))).toList();
        return fitting.size() == 1 ? fitting.getFirst() : null;
    }

    private static String stripped(String id) {
        return SUFFIX.matcher(id).replaceFirst("");
    }
}
