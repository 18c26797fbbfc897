package dev.dormouse.connector;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * Asks holders again and again, over their side channels, how the requests stand that this rank has
 * registered: whether they are still held, and, of those that are not waited for any more, whether
 * nothing can write them. A holder answers so also while it sleeps, when it cannot reach this
 * engine, and after it was restarted. One conversation at a time with each.
 */
final class PushInquiries {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");
    private static final int MAX_QUESTIONS = 256;

    /** A conversation, and what each of its questions is about. */
    private record Inquiry(
            List<PushReceipt> receipts,
            boolean cancels,
            CompletableFuture<List<byte[]>> answers,
            long startedNanos) {}

    private final ConnectorConfig config;
    private final RemoteEngines engines;
    private final Map<SideChannelAddress, Inquiry> running = new HashMap<>();

    PushInquiries(ConnectorConfig config, RemoteEngines engines) {
        this.config = config;
        this.engines = engines;
    }

    /** Takes answers, and asks about those of the requests that are due. */
    void progress(Collection<PushReceipt> receipts, long nowNanos) {
        for (Iterator<Inquiry> each = running.values().iterator(); each.hasNext(); ) {
            Inquiry inquiry = each.next();
            if (inquiry.answers.isDone()) {
                each.remove();
                settle(inquiry, nowNanos);
            } else if (nowNanos - inquiry.startedNanos >= config.handshakeTimeout().toNanos()) {
                each.remove(); // its thread is stuck, or waits for its turn
            }
        }
        Map<SideChannelAddress, List<PushReceipt>> due = new HashMap<>();
        for (PushReceipt receipt : receipts) {
            if (receipt.isDue(nowNanos)) {
                SideChannelAddress address = receipt.holder().address();
                if (!running.containsKey(address)) {
                    due.computeIfAbsent(address, _ -> new ArrayList<>()).add(receipt);
                }
            }
        }
        due.forEach((address, asked) -> ask(address, asked, nowNanos));
    }

    /** Cancellations first: blocks and perhaps a sleep wait for them. */
    private void ask(SideChannelAddress address, List<PushReceipt> due, long nowNanos) {
        boolean cancels = due.stream().anyMatch(receipt -> receipt.failure() != null);
        List<PushReceipt> asked =
                due.stream()
                        .filter(receipt -> (receipt.failure() != null) == cancels)
                        .limit(MAX_QUESTIONS)
                        .toList();
        asked.forEach(receipt -> receipt.asked(nowNanos));
        List<byte[]> questions = asked.stream().map(each -> question(each, cancels)).toList();
        CompletableFuture<List<byte[]>> answers = engines.ask(address, questions, nowNanos);
        running.put(address, new Inquiry(asked, cancels, answers, nowNanos));
    }

    private byte[] question(PushReceipt receipt, boolean cancels) {
        return cancels ? new PushCancel(receipt.decoder()).encode() : claim(receipt).encode();
    }

    private HoldQuestion claim(PushReceipt receipt) {
        return HoldQuestion.of(receipt.order(), config.instanceId());
    }

    private void settle(Inquiry inquiry, long nowNanos) {
        if (inquiry.answers.isCompletedExceptionally()) {
            LOG.log(
                    System.Logger.Level.DEBUG,
                    "holder not heard: {0}",
                    inquiry.answers.exceptionNow().getMessage());
            return;
        }
        List<byte[]> answers = inquiry.answers.join();
        for (int i = 0; i < answers.size(); i++) {
            try {
                PushReceipt receipt = inquiry.receipts.get(i);
                if (inquiry.cancels) {
                    receipt.hear(DemandReply.decode(answers.get(i)), nowNanos);
                } else {
                    receipt.hear(
                            HoldAnswer.decode(answers.get(i), claim(receipt), nowNanos), nowNanos);
                }
            } catch (WireException e) { // it is asked again
                LOG.log(System.Logger.Level.DEBUG, "holder not understood: {0}", e.getMessage());
            }
        }
    }
}
