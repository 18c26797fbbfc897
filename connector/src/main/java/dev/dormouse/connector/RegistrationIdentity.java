package dev.dormouse.connector;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Which pages of which process a peer's payloads describe.
 *
 * @param instanceId the peer's process, null if it tells none
 * @param epoch the registration epoch: the smallest of the payloads of one handshake, in case it
 *     straddled a republish
 * @param newestEpoch the largest of them, otherwise equal to {@code epoch}
 */
record RegistrationIdentity(@Nullable String instanceId, long epoch, long newestEpoch) {
    /** What to do with a request, given what is loaded. */
    enum Verdict {
        /** Read through what is loaded. */
        READ,
        /** What is loaded may be older than the request: ask the peer first. */
        ASK,
        /** The request's blocks are gone, or never were. */
        STALE
    }

    /**
     * Judges a request against this loaded registration.
     *
     * @param asked whether the peer was asked after the request arrived, so that nothing newer than
     *     this existed then
     * @param held whether the peer said after that that it holds the request in this very
     *     registration
     */
    Verdict judge(RemoteSource request, boolean asked, boolean held) {
        Verdict ifUnsure = asked ? Verdict.STALE : Verdict.ASK;
        String named = request.instanceId();
        if (named != null && !named.equals(instanceId)) {
            return ifUnsure;
        }
        boolean sameInstance = Objects.equals(named, instanceId);
        boolean complete = sameInstance && request.epoch() > 0;
        if (!complete && !asked && !held) {
            return Verdict.ASK;
        }
        if (!complete && instanceId != null && !held) { // it could have told
            return Verdict.STALE;
        }
        if (epoch != newestEpoch && request.epoch() == 0) {
            return ifUnsure;
        }
        if (request.epoch() != 0 && request.epoch() < newestEpoch) {
            return Verdict.STALE;
        }
        return request.epoch() > epoch ? ifUnsure : Verdict.READ;
    }

    /** True if a message, which names no memory, reaches the request's holder through this. */
    boolean reaches(RemoteSource request) {
        return instanceId == null
                || request.instanceId() == null
                || instanceId.equals(request.instanceId());
    }
}
