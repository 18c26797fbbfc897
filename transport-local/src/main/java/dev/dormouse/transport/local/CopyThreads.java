package dev.dormouse.transport.local;

import java.util.List;
import java.util.stream.IntStream;

/**
 * The threads that copy host memory. One leads: transfers end in the order in which they came. The
 * others help with those that are large. Safe for all threads; idle, they take no time.
 */
final class CopyThreads implements AutoCloseable {
    static final String NAME = "dormouse-copy";

    /** More of them wait for memory rather than copy. */
    private static final int MOST = 4;

    /** What a thread must find to do to be worth waking. */
    private static final long SHARE_BYTES = 1 << 20;

    private final CopyThread leader;
    private final List<CopyThread> helpers;

    /** As many as a machine with that many processors can use; starts them. */
    static CopyThreads forProcessors(int processors) {
        return new CopyThreads(Math.clamp(processors, 1, MOST));
    }

    private CopyThreads(int count) {
        leader = new CopyThread(NAME);
        helpers =
                IntStream.range(1, count)
                        .mapToObj(number -> new CopyThread(NAME + "-" + number))
                        .toList();
    }

    /** Copies; it ends after what was submitted before. */
    void submit(HostTransfer transfer) {
        leader.submit(transfer::lead);
        helpers.stream()
                .limit(Math.max(0, transfer.bytes() / SHARE_BYTES - 1))
                .forEach(helper -> helper.submit(transfer::help));
    }

    /** Makes a mapping's first touches cheap, a piece whenever a transfer has ended or none is. */
    void populate(PeerMapping mapping) {
        leader.submit(
                () -> {
                    if (mapping.populateMore()) {
                        populate(mapping);
                    }
                });
    }

    /** Ends the threads; no memory is touched afterwards. Idempotent. */
    @Override
    public void close() {
        leader.close();
        helpers.forEach(CopyThread::close);
    }
}
