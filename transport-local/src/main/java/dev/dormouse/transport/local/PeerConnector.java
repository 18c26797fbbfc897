package dev.dormouse.transport.local;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.LibcException;
import dev.dormouse.foreign.PeerCredentials;
import dev.dormouse.foreign.PollSet;
import dev.dormouse.foreign.SocketMessage;
import dev.dormouse.foreign.UnixSocket;
import dev.dormouse.transport.MemoryWithdrawnException;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/** Connects to another agent and maps what it gives. */
final class PeerConnector {
    private static final String ENDED =
            "it ended the connection: it does not allow this process's user, has too many peers,"
                    + " or is being closed";
    private static final long RETRY_NANOS = 1_000_000;
    private static final long NANOS_PER_MILLI = 1_000_000;

    private final String agentName;
    private final Set<Integer> users;
    private final long limitNanos;
    private final @Nullable DeviceCopier copier;

    /**
     * Connects nothing yet.
     *
     * @param agentName this agent's
     * @param users whose processes may be peers
     * @param limits how long an answer is waited for
     * @param copier this agent's device; null if it maps host memory only
     */
    PeerConnector(
            String agentName, Set<Integer> users, Limits limits, @Nullable DeviceCopier copier) {
        this.agentName = agentName;
        this.users = users;
        this.limitNanos = limits.load().toNanos();
        this.copier = copier;
    }

    /** A connection over which memory was given, and that memory. */
    record Connected(int socket, PeerMapping mapping) {}

    /**
     * Asks for the memory of all registrations that the metadata name.
     *
     * @throws TransportException if the agent has gone, does not give them, or does not answer in
     *     time; then nothing is held
     */
    Connected connect(LocalMetadata peer) {
        long deadlineNanos = System.nanoTime() + limitNanos;
        int socket = socket(peer, deadlineNanos);
        try (SocketMessage message =
                new SocketMessage(Frame.MAX_BYTES, Frame.MAX_PART_DESCRIPTORS)) {
            try {
                requireAllowed(peer, socket);
                Frame.Hello hello =
                        new Frame.Hello(peer.incarnation(), agentName, peer.registrations());
                send(peer, socket, message, hello);
                return new Connected(socket, mapping(peer, socket, message, deadlineNanos));
            } catch (LibcException e) {
                throw giveUp(socket, message, failure(peer, String.valueOf(e.getMessage()), e));
            } catch (TransportException e) {
                throw giveUp(socket, message, e);
            }
        }
    }

    private int socket(LocalMetadata peer, long deadlineNanos) {
        try {
            while (true) {
                OptionalInt socket = UnixSocket.connect(peer.socketName());
                if (socket.isPresent()) {
                    return socket.getAsInt();
                }
                if (System.nanoTime() - deadlineNanos > 0) {
                    throw failure(peer, "too many connections wait there");
                }
                LockSupport.parkNanos(RETRY_NANOS);
            }
        } catch (LibcException e) {
            throw failure(peer, "its process has ended, or the agent is closed", e);
        }
    }

    /** Anybody may have taken the name after the agent had gone. */
    private void requireAllowed(LocalMetadata peer, int socket) {
        PeerCredentials credentials = UnixSocket.credentials(socket);
        if (!users.contains(credentials.uid())) {
            throw failure(
                    peer,
                    "its process belongs to user %d, and allowed are %s"
                            .formatted(credentials.uid(), users));
        }
    }

    private static void send(
            LocalMetadata peer, int socket, SocketMessage message, Frame.Hello hello) {
        try {
            if (!message.send(socket, hello.encode())) {
                throw failure(peer, "it takes no frame");
            }
        } catch (LibcException e) {
            throw failure(peer, ENDED, e);
        }
    }

    private SocketMessage.Received.Message answer(
            LocalMetadata peer, int socket, SocketMessage message, long deadlineNanos) {
        try (PollSet polls = new PollSet()) {
            polls.add(socket, PollSet.POLLIN);
            while (true) {
                switch (message.receive(socket)) {
                    case SocketMessage.Received.Message answer -> {
                        return answer;
                    }
                    case SocketMessage.Received.End() -> throw failure(peer, ENDED);
                    case SocketMessage.Received.Nothing() -> {
                        long leftNanos = deadlineNanos - System.nanoTime();
                        if (leftNanos <= 0) {
                            throw failure(
                                    peer,
                                    "no answer came within "
                                            + limitNanos / NANOS_PER_MILLI
                                            + " ms: its process may be stopped");
                        }
                        polls.await((int) Math.ceilDiv(leftNanos, NANOS_PER_MILLI));
                    }
                }
            }
        }
    }

    /** Takes all parts of the answer, and maps what they give. */
    private PeerMapping mapping(
            LocalMetadata peer, int socket, SocketMessage message, long deadlineNanos) {
        List<Integer> descriptors = new ArrayList<>();
        List<SharedMemory> memory = new ArrayList<>();
        List<SharedSegment> segments = new ArrayList<>();
        try {
            boolean complete = false;
            while (!complete) {
                SocketMessage.Received.Message answer =
                        answer(peer, socket, message, deadlineNanos);
                Arrays.stream(answer.descriptors()).forEach(descriptors::add);
                Frame.Grant part = grant(peer, answer);
                memory.add(part.memory());
                segments.addAll(part.segments());
                complete = part.last();
                if (!complete && part.memory().count() == 0) {
                    throw failure(peer, "a part of its answer gives nothing");
                }
                if (descriptors.size() > Frame.MAX_DESCRIPTORS
                        || segments.size() > Frame.MAX_SEGMENTS) {
                    throw failure(peer, "its answer is too long");
                }
            }
            requireWithin(peer, segments, descriptors.size());
            return map(
                    SharedMemory.joined(memory),
                    descriptors.stream().mapToInt(Integer::intValue).toArray(),
                    segments);
        } finally {
            descriptors.forEach(SharedBacking::closeQuietly);
        }
    }

    private static Frame.Grant grant(LocalMetadata peer, SocketMessage.Received.Message answer) {
        if (answer.cut()) {
            throw failure(peer, "its answer is too long, or this process may have no more files");
        }
        return switch (Frame.decode(answer.bytes())) {
            case Frame.Refusal(String reason) ->
                    throw new MemoryWithdrawnException(
                            "load peer " + peer.agentName() + " failed: " + reason);
            case Frame.Grant grant -> {
                if (!grant.incarnation().equals(peer.incarnation())
                        || !grant.agentName().equals(peer.agentName())) {
                    throw failure(peer, "another agent answered, " + grant.agentName());
                }
                if (grant.memory().count() != answer.descriptors().length) {
                    throw failure(
                            peer,
                            "%d files came, and %d were told"
                                    .formatted(
                                            answer.descriptors().length, grant.memory().count()));
                }
                yield grant;
            }
            case Frame frame ->
                    throw failure(peer, "it answered " + frame.getClass().getSimpleName());
        };
    }

    private static void requireWithin(
            LocalMetadata peer, List<SharedSegment> segments, int descriptors) {
        for (SharedSegment segment : segments) {
            if (segment.file() >= descriptors) {
                throw failure(
                        peer,
                        "a range is said to be in file %d of %d"
                                .formatted(segment.file(), descriptors));
            }
        }
    }

    private PeerMapping map(SharedMemory memory, int[] descriptors, List<SharedSegment> segments) {
        return switch (memory) {
            case SharedMemory.HostFiles _ -> HostMapping.map(descriptors, segments);
            case SharedMemory.DevicePieces pieces -> {
                if (copier == null) {
                    throw new TransportException(
                            "map a peer's memory failed: it is of GPU %s, and this agent has no device; open it with one"
                                    .formatted(pieces.device()));
                }
                yield DeviceMapping.map(copier, pieces, descriptors, segments);
            }
        };
    }

    /** Tells the owner that nothing is held, unless something is. */
    private static TransportException giveUp(
            int socket, SocketMessage message, TransportException failure) {
        try {
            if (!PeerMapping.isLeftBehind(failure)) {
                boolean _ = message.send(socket, new Frame.Released().encode());
            }
        } catch (LibcException e) {
            failure.addSuppressed(e);
        } finally {
            Libc.close(socket);
        }
        return failure;
    }

    private static TransportException failure(LocalMetadata peer, String why) {
        return new TransportException("load peer " + peer.agentName() + " failed: " + why);
    }

    private static TransportException failure(LocalMetadata peer, String why, Exception cause) {
        return new TransportException("load peer " + peer.agentName() + " failed: " + why, cause);
    }
}
