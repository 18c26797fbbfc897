package dev.dormouse.transport.local;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * How an agent of this host is set up.
 *
 * @param agentName unique among all agents of a deployment, at most {@value #MAX_NAME_BYTES} bytes
 *     in UTF-8
 * @param source what backs the memory that is registered
 * @param access what peers may do with this agent's memory
 * @param allowedUids users whose processes may be peers, besides this process's own user
 * @param device to copy device memory with; null for an agent that copies host memory, or none
 */
public record LocalTransportOptions(
        String agentName,
        SegmentSource source,
        SegmentAccess access,
        Set<Integer> allowedUids,
        @Nullable LocalDevice device) {
    /** What an agent's name may have. */
    public static final int MAX_NAME_BYTES = 256;

    /** Checks the name. */
    public LocalTransportOptions {
        allowedUids = Set.copyOf(allowedUids);
        int nameBytes = agentName.getBytes(UTF_8).length;
        if (nameBytes < 1 || nameBytes > MAX_NAME_BYTES) {
            throw new IllegalArgumentException(
                    "agent name of %d bytes: must be 1 to %d".formatted(nameBytes, MAX_NAME_BYTES));
        }
    }

    /** An agent with a random name, whose memory peers of the same user may read. */
    public static LocalTransportOptions of(SegmentSource source) {
        return new LocalTransportOptions(
                UUID.randomUUID().toString(), source, SegmentAccess.READ, Set.of(), null);
    }

    /** These with another name. */
    public LocalTransportOptions withAgentName(String name) {
        return new LocalTransportOptions(name, source, access, allowedUids, device);
    }

    /** These with another access. */
    public LocalTransportOptions withAccess(SegmentAccess granted) {
        return new LocalTransportOptions(agentName, source, granted, allowedUids, device);
    }

    /** These, and processes of further users may be peers. */
    public LocalTransportOptions withAllowedUids(Set<Integer> uids) {
        return new LocalTransportOptions(agentName, source, access, uids, device);
    }

    /** These, and device memory is copied, too. */
    public LocalTransportOptions withDevice(LocalDevice copying) {
        return new LocalTransportOptions(agentName, source, access, allowedUids, copying);
    }
}
