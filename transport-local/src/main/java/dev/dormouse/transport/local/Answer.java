package dev.dormouse.transport.local;

import dev.dormouse.foreign.SocketMessage;
import dev.dormouse.transport.MemoryWithdrawnException;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** An owner's answer while its parts arrive, with the descriptors that have come along. */
final class Answer implements AutoCloseable {
    private final LocalMetadata owner;
    private final List<Integer> descriptors = new ArrayList<>();
    private final List<SharedMemory> memory = new ArrayList<>();
    private final List<SharedSegment> segments = new ArrayList<>();

    /**
     * Has nothing yet.
     *
     * @param owner who is asked
     */
    Answer(LocalMetadata owner) {
        this.owner = owner;
    }

    /**
     * Takes what has come; its descriptors are this object's then, whatever it is.
     *
     * @return whether it was the last part
     * @throws MemoryWithdrawnException if the owner refuses
     * @throws TransportException if it is no part of an answer
     */
    boolean add(SocketMessage.Received.Message message) {
        Arrays.stream(message.descriptors()).forEach(descriptors::add);
        if (message.cut()) {
            throw failure("its answer is too long, or this process may have no more files");
        }
        if (descriptors.size() > Frame.MAX_DESCRIPTORS) {
            throw failure("its answer is too long");
        }
        return switch (Frame.decode(message.bytes())) {
            case Frame.Grant part -> {
                add(part, message.descriptors().length);
                yield part.last();
            }
            case Frame.Refusal(String reason) ->
                    throw new MemoryWithdrawnException(
                            "load peer " + owner.agentName() + " failed: " + reason);
            // sent before it had the question
            case Frame.Revoke(), Frame.Offer _ -> false;
            case Frame frame -> throw failure("it answered " + frame.getClass().getSimpleName());
        };
    }

    private void add(Frame.Grant part, int came) {
        if (!part.incarnation().equals(owner.incarnation())
                || !part.agentName().equals(owner.agentName())) {
            throw failure("another agent answered, " + part.agentName());
        }
        if (part.memory().count() != came) {
            throw failure("%d files came, and %d were told".formatted(came, part.memory().count()));
        }
        memory.add(part.memory());
        segments.addAll(part.segments());
        if (!part.last() && came == 0) {
            throw failure("a part of its answer gives nothing");
        }
        if (segments.size() > Frame.MAX_SEGMENTS) {
            throw failure("its answer is too long");
        }
    }

    /**
     * Maps what all parts give.
     *
     * @param copier this agent's device; null if it maps host memory only
     * @throws TransportException if that cannot be
     */
    PeerMapping map(@Nullable DeviceCopier copier) {
        for (SharedSegment segment : segments) {
            if (segment.file() >= descriptors.size()) {
                throw failure(
                        "a range is said to be in file %d of %d"
                                .formatted(segment.file(), descriptors.size()));
            }
        }
        int[] files = descriptors.stream().mapToInt(Integer::intValue).toArray();
        return switch (SharedMemory.joined(memory)) {
            case SharedMemory.HostFiles _ -> HostMapping.map(files, segments);
            case SharedMemory.DevicePieces pieces -> {
                if (copier == null) {
                    throw new TransportException(
                            "map a peer's memory failed: it is of GPU %s, and this agent has no device; open it with one"
                                    .formatted(pieces.device()));
                }
                yield DeviceMapping.map(copier, pieces, files, segments);
            }
        };
    }

    private TransportException failure(String why) {
        return ReaderSide.failure(owner, why);
    }

    /** Closes the descriptors: a mapping keeps the memory without them. Idempotent. */
    @Override
    public void close() {
        descriptors.forEach(SharedBacking::closeQuietly);
        descriptors.clear();
    }
}
