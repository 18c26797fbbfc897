package dev.dormouse.transport.local;

import dev.dormouse.foreign.LibcException;
import dev.dormouse.foreign.PeerCredentials;
import dev.dormouse.foreign.UnixSocket;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What this agent gives to peers, and who has it. Whoever was given a registration's descriptors
 * holds it until it says that it has unmapped them, or its process has ended; that its connection
 * ended says nothing.
 *
 * <p>Safe for all threads: the agent's owner registers and revokes, the socket loop serves peers.
 * No call waits for a peer.
 */
final class OwnerSide {
    private static final System.Logger LOG = System.getLogger("dormouse.transport.local");

    private final Token incarnation = Token.random();
    private final String agentName;
    private final Set<Integer> users;
    private final Limits limits;
    private final Wire wire;
    private final SocketLoop loop;
    private final Inbox inbox = new Inbox();
    private final Listener listener = new Listener(this::accept);
    private final Map<Token, LocalRegistration> registrations = new LinkedHashMap<>();
    private final Set<ReaderSession> sessions = new LinkedHashSet<>();
    private boolean closed;

    /** A part of an answer that gives memory. */
    @SuppressWarnings("ArrayRecordComponent") // used once, never compared
    record Granted(byte[] frame, int[] descriptors) {}

    /**
     * Starts to listen.
     *
     * @param users whose processes may be peers
     */
    OwnerSide(String agentName, Set<Integer> users, Limits limits, Wire wire, SocketLoop loop) {
        this.agentName = agentName;
        this.users = Set.copyOf(users);
        this.limits = limits;
        this.wire = wire;
        this.loop = loop;
        loop.watch(listener);
    }

    Inbox inbox() {
        return inbox;
    }

    synchronized LocalMetadata metadata(HostIdentity host) {
        return new LocalMetadata(
                host, incarnation, listener.name(), agentName, List.copyOf(registrations.keySet()));
    }

    /**
     * Gives a registration to peers from now on.
     *
     * @throws TransportException if that is more than one answer can give, or of another kind than
     *     what is given already
     */
    synchronized void add(LocalRegistration registration) {
        List<LocalRegistration> all = new ArrayList<>(registrations.values());
        all.add(registration);
        int descriptors = memory(all).count();
        int segments = all.stream().mapToInt(each -> each.backing().segments().size()).sum();
        if (all.size() > LocalMetadata.MAX_REGISTRATIONS
                || descriptors > Frame.MAX_DESCRIPTORS
                || segments > Frame.MAX_SEGMENTS) {
            throw new TransportException(
                    "register failed: %d registrations with %d ranges in %d files or pieces, at most %d, %d and %d are possible"
                            .formatted(
                                    all.size(),
                                    segments,
                                    descriptors,
                                    LocalMetadata.MAX_REGISTRATIONS,
                                    Frame.MAX_SEGMENTS,
                                    Frame.MAX_DESCRIPTORS));
        }
        registrations.put(registration.token(), registration);
        offer();
    }

    /** Those who stand by map the memory at once, rather than when they are asked to read it. */
    private void offer() {
        List<LocalRegistration> all = List.copyOf(registrations.values());
        if (all.stream().allMatch(LocalRegistration::isAdmitting)) {
            List<Token> tokens = all.stream().map(LocalRegistration::token).toList();
            List.copyOf(sessions).forEach(session -> session.offer(tokens));
        }
    }

    private static SharedMemory memory(List<LocalRegistration> all) {
        return SharedMemory.joined(all.stream().map(each -> each.backing().memory()).toList());
    }

    /** See {@link LocalRegistration#revoke}. */
    synchronized List<String> revoke(LocalRegistration registration) {
        registration.setAdmitting(false);
        List<ReaderSession> holders = holders(registration);
        holders.forEach(ReaderSession::revoke);
        if (!holders.isEmpty()) {
            loop.wake();
        }
        return holders.stream().map(ReaderSession::toString).toList();
    }

    /** See {@link LocalRegistration#readmit}. */
    synchronized void readmit(LocalRegistration registration) {
        registration.setAdmitting(true);
        offer();
    }

    /**
     * Lets go of a registration's pages.
     *
     * @throws TransportException if somebody holds it
     */
    synchronized void remove(LocalRegistration registration) {
        List<ReaderSession> holders = holders(registration);
        if (!holders.isEmpty()) {
            throw new TransportException(
                    "deregister failed: still mapped by %s; revoke it, or end the process"
                            .formatted(holders));
        }
        if (registrations.remove(registration.token()) != null) {
            registration.backing().close();
        }
    }

    /** Ends everything but the listener; peers see their connections end. Idempotent. */
    synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        List.copyOf(sessions).forEach(ReaderSession::close);
        registrations.values().forEach(registration -> registration.backing().close());
        registrations.clear();
    }

    /** Those that hold it, after everything that they have sent so far. */
    private List<ReaderSession> holders(LocalRegistration registration) {
        List.copyOf(sessions).stream()
                .filter(session -> session.isHolding(registration))
                .forEach(ReaderSession::drain);
        return sessions.stream().filter(session -> session.isHolding(registration)).toList();
    }

    private synchronized void accept(int fd) {
        Connection connection = new Connection(wire, fd);
        try {
            PeerCredentials peer = UnixSocket.credentials(fd);
            if (closed || !users.contains(peer.uid()) || !hasRoom()) {
                LOG.log(
                        System.Logger.Level.DEBUG,
                        "connection refused: pid={0} uid={1} sessions={2}",
                        peer.pid(),
                        peer.uid(),
                        sessions.size());
                connection.close();
                return;
            }
            ReaderProcess process = new ReaderProcess(wire, UnixSocket.process(fd), peer.pid());
            ReaderSession session = new ReaderSession(this, connection, process);
            sessions.add(session);
            loop.watch(session);
        } catch (LibcException e) { // it has ended, or there is no descriptor left
            LOG.log(System.Logger.Level.WARNING, "a connection is refused", e);
            connection.close();
        }
        limitHalfMade();
    }

    /** Makes room, if it must: who stands by has nothing to lose. */
    private boolean hasRoom() {
        if (sessions.size() >= limits.sessions()) {
            sessions.stream()
                    .filter(each -> each.state() == ReaderSession.State.STANDING_BY)
                    .findFirst()
                    .ifPresent(ReaderSession::close);
        }
        return sessions.size() < limits.sessions();
    }

    private void limitHalfMade() {
        List<ReaderSession> halfMade =
                sessions.stream()
                        .filter(each -> each.state() == ReaderSession.State.HALF_MADE)
                        .toList();
        if (halfMade.size() > limits.halfMade()) {
            halfMade.getFirst().drain(); // it may have said by now what it wants
            if (halfMade.getFirst().state() == ReaderSession.State.HALF_MADE) {
                halfMade.getFirst().close();
            }
        }
    }

    // What sessions ask, who are guarded by this object.

    /** Until when whoever has to say something now must have said it. */
    long answerDeadlineNanos() {
        return System.nanoTime() + limits.hello().toNanos();
    }

    /** Why nothing is given; null if all that is asked for is. */
    @Nullable String refusal(Frame.Hello hello) {
        if (!hello.incarnation().equals(incarnation)) {
            return "another start of the agent was meant: ask its engine for its metadata";
        }
        for (Token token : hello.registrations()) {
            LocalRegistration registration = registrations.get(token);
            if (registration == null) {
                return "the memory was registered anew, or sleeps: ask its engine for its metadata";
            }
            if (!registration.isAdmitting()) {
                return "the memory is revoked by its owner, as before a sleep";
            }
        }
        return null;
    }

    /** Those that are meant, each once. */
    List<LocalRegistration> select(List<Token> tokens) {
        return registrations.values().stream()
                .filter(registration -> tokens.contains(registration.token()))
                .toList();
    }

    /** The answer that gives registrations, in parts. */
    List<Granted> grant(List<LocalRegistration> given) {
        List<Integer> descriptors = new ArrayList<>();
        List<SharedSegment> segments = new ArrayList<>();
        for (LocalRegistration registration : given) {
            int first = descriptors.size();
            descriptors.addAll(registration.backing().descriptors());
            for (SharedSegment segment : registration.backing().segments()) {
                segments.add(
                        new SharedSegment(
                                segment.address(),
                                segment.lengthBytes(),
                                first + segment.file(),
                                segment.offsetBytes()));
            }
        }
        List<Granted> parts = new ArrayList<>();
        int from = 0;
        for (Frame.Grant part :
                Frame.Grant.parts(incarnation, agentName, memory(given), segments)) {
            int to = from + part.memory().count();
            int[] files =
                    descriptors.subList(from, to).stream().mapToInt(Integer::intValue).toArray();
            parts.add(new Granted(part.encode(), files));
            from = to;
        }
        return parts;
    }

    /** A session has broken the rules. */
    void reject(ReaderSession session, TransportException why) {
        inbox.reject();
        // Anybody of an allowed user can connect and send nonsense, as often as he likes.
        boolean isReader = session.state() == ReaderSession.State.HOLDING;
        LOG.log(
                isReader ? System.Logger.Level.WARNING : System.Logger.Level.DEBUG,
                "a peer''s connection is ended: peer={0} reason={1}",
                session,
                why.getMessage());
    }

    /** A session holds nothing any more, and is gone. */
    void ended(ReaderSession session) {
        sessions.remove(session);
        loop.forget(session);
        loop.wake();
    }

    /** A session that was given up still waits for the end of its process. */
    void watchAgain(ReaderSession session) {
        loop.watch(session);
    }

    /** What a session waits for has changed. */
    void wake() {
        loop.wake();
    }
}
