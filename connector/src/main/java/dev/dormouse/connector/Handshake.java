package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * A question to a peer's side channel that is under way. The worker thread asks it how far it is;
 * only {@link #answers} is touched by the handshake thread.
 *
 * @param address where the peer is asked
 * @param startedNanos when
 * @param namedEpoch the newest epoch that a waiting request named when it started
 * @param waiting the reads that waited when it started: for them, the answer is new enough
 * @param answers the undecoded payloads, or why there are none
 */
record Handshake(
        SideChannelAddress address,
        long startedNanos,
        long namedEpoch,
        List<WaitingRead> waiting,
        CompletableFuture<List<byte[]>> answers) {
    Handshake {
        waiting = List.copyOf(waiting);
    }

    /** The newest epoch among {@code reads}. */
    static long newestEpoch(List<WaitingRead> reads) {
        return reads.stream().mapToLong(read -> read.order().remote().epoch()).max().orElse(0);
    }

    /** Those of {@code reads} that name {@code address}. */
    static List<WaitingRead> at(SideChannelAddress address, List<WaitingRead> reads) {
        List<WaitingRead> matching = new ArrayList<>();
        for (WaitingRead read : reads) {
            if (read.names(address)) {
                matching.add(read);
            }
        }
        return matching;
    }
}
