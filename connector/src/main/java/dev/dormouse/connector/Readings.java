package dev.dormouse.connector;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** The requests whose KV other engines hold, as their parameters say. */
final class Readings {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");

    private final ConnectorConfig config;
    private final LongSupplier nanoClock;
    private final Map<String, Reading> readings = new HashMap<>();
    private final Set<String> unreadable = new HashSet<>();

    Readings(ConnectorConfig config, LongSupplier nanoClock) {
        this.config = config;
        this.nanoClock = nanoClock;
    }

    /** The request's remote part, or null if there is none that can be understood. */
    @Nullable Reading of(ConnectorRequest request) {
        KvTransferParams params = request.params();
        String id = request.id();
        // Whoever was asked first may be shown the request without its remote part afterwards.
        if (params == null || unreadable.contains(id) || !asksForRead(params)) {
            return null;
        }
        Reading known = readings.get(id);
        if (known != null) {
            return known;
        }
        String mode = params.transferMode();
        if (mode != null && !mode.equals(config.factors().transferMode())) {
            unreadable.add(id);
            LOG.log(
                    System.Logger.Level.INFO,
                    "not for this connector, whose transfer mode is {0}: request={1} mode={2}",
                    config.factors().transferMode(),
                    id,
                    Excerpt.of(mode));
            return null;
        }
        try {
            Reading reading = read(request, params);
            readings.put(id, reading);
            return reading;
        } catch (ConnectorException e) {
            unreadable.add(id);
            LOG.log(
                    System.Logger.Level.WARNING,
                    "no read: {0}; the prompt is computed here: request={1}",
                    e.getMessage(),
                    id);
            return null;
        }
    }

    /** The request has ended. */
    void forget(String requestId) {
        readings.remove(requestId);
        unreadable.remove(requestId);
    }

    private boolean asksForRead(KvTransferParams params) {
        return params.remotePrefill()
                || (config.readBack() != null
                        && params.remoteDecode()
                        && RemoteHandOver.isNamedBy(params));
    }

    private Reading read(ConnectorRequest request, KvTransferParams params) {
        RemoteHandOver remote = RemoteHandOver.read(params);
        double nowSeconds = nanoClock.getAsLong() / 1e9;
        if (params.remotePrefill()) {
            return new Reading(remote, nowSeconds, false, otherPrompt(remote, request));
        }
        String refusal = otherConversation(remote, request);
        if (refusal != null) {
            LOG.log(
                    System.Logger.Level.INFO,
                    "nothing is read back: {0}; the prompt is computed here: request={1}",
                    refusal,
                    request.id());
        }
        return new Reading(remote, nowSeconds, true, refusal);
    }

    /**
     * Why the producer's blocks cannot be this request's, or null. Another prompt was tokenized
     * differently, or changed on the way, or its parameters were taken for this one's.
     */
    private static @Nullable String otherPrompt(RemoteHandOver remote, ConnectorRequest request) {
        String theirs = remote.hash();
        String ours = theirs == null ? null : request.hashes().of(request.promptTokens());
        if (ours != null && !ours.equals(theirs)) {
            return "the prompt has other tokens here than it had at the producer";
        }
        int there = remote.promptTokens() > 0 ? remote.promptTokens() : remote.tokens();
        return there == 0 || there == request.promptTokens()
                ? null
                : "the prompt has "
                        + request.promptTokens()
                        + " tokens here and had "
                        + there
                        + " at the producer";
    }

    /**
     * Why what a decode engine holds cannot be the beginning of this prompt, or null. A client may
     * have changed what was said before, or text may give other tokens than those that it was made
     * of.
     */
    private static @Nullable String otherConversation(
            RemoteHandOver remote, ConnectorRequest request) {
        RemoteSource source = remote.source();
        if (source.instanceId() == null && !source.lease().tellsDeadline()) {
            return "the decode engine does not tell until when it holds the blocks";
        }
        String theirs = remote.hash();
        if (theirs == null) {
            return null;
        }
        if (remote.tokens() > request.promptTokens()) {
            return "the prompt has "
                    + request.promptTokens()
                    + " tokens and the decode engine holds "
                    + remote.tokens();
        }
        String ours = request.hashes().of(remote.tokens());
        return ours == null || ours.equals(theirs)
                ? null
                : "the prompt does not begin with the tokens that the decode engine holds";
    }
}
