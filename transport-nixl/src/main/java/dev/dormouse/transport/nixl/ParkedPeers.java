package dev.dormouse.transport.nixl;

import dev.dormouse.nixl.RemoteAgent;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Iterator;
import org.jspecify.annotations.Nullable;

/**
 * Peers that their user has closed, and that NIXL keeps for the case that the very same metadata
 * come again.
 *
 * <p>To drop a peer and load it again costs each side up to two sockets and some KiB for the life
 * of the process: NIXL 1.5.1 closes UCX's endpoint without force, and UCX keeps an endpoint that
 * its peer has connected to until the worker ends ({@code ucp_ep_disconnected}). A peer in host
 * memory whose transports use no keys (cma, tcp) tells the same bytes after each wake; what is
 * loaded from equal bytes is equal. Where registrations have keys, as over RDMA, the bytes differ,
 * and the peer is dropped and loaded anew.
 */
final class ParkedPeers {
    private record Parked(RemoteAgent agent, byte[] metadata) {}

    private final Deque<Parked> parked = new ArrayDeque<>();
    private final int limit;

    /**
     * Keeps nothing yet.
     *
     * @param limit so many peers that never come back keep their connection
     */
    ParkedPeers(int limit) {
        this.limit = limit;
    }

    /**
     * Keeps a peer on which nothing is built; if there are too many, drops the one that has been
     * here for longest.
     */
    void park(RemoteAgent agent, byte[] metadata) {
        parked.addLast(new Parked(agent, metadata));
        if (parked.size() > limit) {
            parked.getFirst().agent.close();
            parked.removeFirst();
        }
    }

    /** Gives out the peer that was loaded from these very bytes, or null. */
    @Nullable RemoteAgent take(byte[] metadata) {
        for (Iterator<Parked> each = parked.iterator(); each.hasNext(); ) {
            Parked candidate = each.next();
            if (Arrays.equals(candidate.metadata, metadata)) {
                each.remove();
                return candidate.agent;
            }
        }
        return null;
    }

    /** Drops the peer of that name; false if none is here. */
    boolean drop(String agentName) {
        for (Iterator<Parked> each = parked.iterator(); each.hasNext(); ) {
            Parked candidate = each.next();
            if (candidate.agent.name().equals(agentName)) {
                candidate.agent.close();
                each.remove();
                return true;
            }
        }
        return false;
    }
}
