package dev.dormouse.transport.nixl;

import dev.dormouse.nixl.RemoteAgent;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Peers that their user has closed, and that NIXL keeps for the case that the very same metadata
 * come again.
 *
 * <p>To drop a peer and load it again costs each side up to two sockets and some KiB for the life
 * of the process: NIXL 1.5.1 closes UCX's endpoint without force, and UCX keeps an endpoint that
 * its peer has connected to until the worker ends ({@code ucp_ep_disconnected}); over RDMA it also
 * costs a queue pair. A peer in host memory whose transports use no keys (cma, tcp) tells the same
 * bytes after each wake; what is loaded from equal bytes is equal. Where registrations have keys,
 * as over RDMA, the bytes differ: the peer is refreshed if it tells its keys under a fresh device
 * id (see {@link DeviceIds}), or else dropped and loaded anew.
 */
final class ParkedPeers {
    /** By what they were loaded from, oldest first. */
    private final Map<ByteBuffer, RemoteAgent> parked = new LinkedHashMap<>();

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
        parked.put(ByteBuffer.wrap(metadata), agent);
        if (parked.size() > limit) {
            Iterator<RemoteAgent> each = parked.values().iterator();
            each.next().close();
            each.remove();
        }
    }

    /** Gives out the peer that was loaded from these very bytes, or null. */
    @Nullable RemoteAgent take(byte[] metadata) {
        return parked.remove(ByteBuffer.wrap(metadata));
    }

    /** The peer of that name, whatever it was loaded from, or null; it stays here. */
    @Nullable RemoteAgent named(String agentName) {
        return parked.values().stream()
                .filter(agent -> agent.name().equals(agentName))
                .findFirst()
                .orElse(null);
    }

    /** Gives out a peer that is here, or was and is closed. */
    void remove(RemoteAgent agent) {
        parked.values().remove(agent);
    }

    /** After NIXL has dropped everything. */
    void forget() {
        parked.clear();
    }
}
