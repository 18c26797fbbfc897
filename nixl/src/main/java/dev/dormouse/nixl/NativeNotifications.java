package dev.dormouse.nixl;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import dev.dormouse.foreign.Downcall;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** Messages of a native agent. The caller holds the agent's lock. */
final class NativeNotifications {
    private final NativeAgent agent;
    private final Scratch scratch;
    private final MemorySegment map;
    private final int maxBytes;
    private long rejected;

    NativeNotifications(NativeAgent agent, int maxBytes) {
        this.agent = agent;
        this.scratch = agent.scratch;
        this.maxBytes = maxBytes;
        try {
            int status = (int) NixlCapi.CREATE_NOTIF_MAP.invokeExact(scratch.pointer);
            agent.check(status, "create notification map", null, "");
            map = scratch.pointerValue();
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    void free() {
        try {
            int ignored = (int) NixlCapi.DESTROY_NOTIF_MAP.invokeExact(map);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    void send(String peer, byte[] message) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment bytes = scratch.copyFirst(message);
            int status =
                    (int)
                            NixlCapi.GEN_NOTIF.invokeExact(
                                    agent.pointer,
                                    arena.allocateFrom(peer),
                                    bytes,
                                    (long) message.length,
                                    MemorySegment.NULL);
            agent.check(status, "notify", peer, "bytes=" + message.length);
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    List<Notification> drain() {
        try {
            int status =
                    (int) NixlCapi.GET_NOTIFS.invokeExact(agent.pointer, map, MemorySegment.NULL);
            agent.check(status, "drain notifications", null, "");
            int sized = (int) NixlCapi.NOTIF_MAP_SIZE.invokeExact(map, scratch.size);
            agent.check(sized, "drain notifications", null, "");
            long senders = scratch.sizeValue();
            if (senders == 0) {
                return List.of();
            }
            List<Notification> notifications = new ArrayList<>();
            try {
                for (long i = 0; i < senders; i++) {
                    drainSender(i, notifications);
                }
            } finally {
                int ignored = (int) NixlCapi.NOTIF_MAP_CLEAR.invokeExact(map);
            }
            return notifications;
        } catch (Throwable t) {
            throw Downcall.rethrow(t);
        }
    }

    long rejected() {
        return rejected;
    }

    /**
     * The name comes from the peer. One with a NUL inside cannot be looked up through C strings, so
     * its messages are counted as rejected, as are those that are too long.
     */
    private void drainSender(long index, List<Notification> notifications) throws Throwable {
        int named = (int) NixlCapi.NOTIF_MAP_GET_AGENT_AT.invokeExact(map, index, scratch.pointer);
        if (named < 0) {
            rejected++;
            return;
        }
        MemorySegment cName = scratch.pointerValue();
        int sized = (int) NixlCapi.NOTIF_MAP_GET_NOTIFS_SIZE.invokeExact(map, cName, scratch.size);
        if (sized < 0) {
            rejected++;
            return;
        }
        long count = scratch.sizeValue();
        String name = name(cName);
        if (name.isEmpty()) {
            rejected += count;
            return;
        }
        for (long i = 0; i < count; i++) {
            int got =
                    (int)
                            NixlCapi.NOTIF_MAP_GET_NOTIF.invokeExact(
                                    map, cName, i, scratch.pointer, scratch.size);
            if (got < 0 || scratch.sizeValue() > maxBytes) { // the others must not be lost with it
                rejected++;
            } else {
                notifications.add(new Notification(name, scratch.bytesValue()));
            }
        }
    }

    /** Empty for a name that no agent of ours could have. */
    private static String name(MemorySegment cName) {
        MemorySegment bounded = cName.reinterpret(NixlAgentConfig.MAX_NAME_BYTES + 1L);
        for (int i = 0; i <= NixlAgentConfig.MAX_NAME_BYTES; i++) {
            if (bounded.get(JAVA_BYTE, i) == 0) {
                return bounded.getString(0);
            }
        }
        return "";
    }
}
