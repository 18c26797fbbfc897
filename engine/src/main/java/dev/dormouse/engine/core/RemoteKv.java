package dev.dormouse.engine.core;

import dev.dormouse.connector.ConnectorRequest;
import dev.dormouse.connector.FinishKind;
import dev.dormouse.connector.HandOver;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.connector.SchedulerConnector;
import dev.dormouse.connector.WorkerReport;
import dev.dormouse.engine.kv.BlockManager;
import dev.dormouse.engine.kv.BlockTable;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What the scheduler has to do with other engines: which sequences wait for a read, and which
 * blocks must stay after their sequence ended, because a read still writes them or a reader will
 * come for them.
 *
 * <p>Every block table is in exactly one place, and each is freed when it leaves its place, so a
 * report that comes late, twice or for an unknown request frees nothing.
 */
final class RemoteKv {
    private static final System.Logger LOG = System.getLogger("dormouse.engine");

    /** One part in so many of the blocks may be in quarantine before no more reads are made. */
    private static final int QUARANTINE_SHARE = 4;

    private final @Nullable SchedulerConnector connector;
    private final BlockManager blocks;
    private final int quarantineLimit;
    private final Map<String, Sequence> receiving = new LinkedHashMap<>();
    private final Map<String, BlockTable> endedWhileReceiving = new HashMap<>();
    private final KeptTables held;

    /** Those of {@link #held} that were told to end. */
    private final Map<String, BlockTable> endingHolds = new HashMap<>();

    private final KeptTables quarantined;

    RemoteKv(@Nullable SchedulerConnector connector, BlockManager blocks) {
        this.connector = connector;
        this.blocks = blocks;
        this.held = new KeptTables(blocks.blocks());
        this.quarantined = new KeptTables(blocks.blocks());
        this.quarantineLimit = Math.max(1, blocks.blocks() / QUARANTINE_SHARE);
    }

    /** How a read ended for its sequence. */
    enum Outcome {
        /** The blocks hold what was asked for. */
        USABLE,
        /** They hold nothing. */
        FAILED,
        /** They hold nothing, and are not the sequence's any more: a transfer may write them. */
        QUARANTINED
    }

    /**
     * A read that ended, as far as its sequence is concerned.
     *
     * @param reason why it failed, for the client; empty if it did not, or nobody knows
     */
    record Received(Sequence sequence, Outcome outcome, String reason) {}

    /** The engine's ids of what keeps it from being {@linkplain #isQuiet() quiet}. */
    List<String> pendingIds() {
        return Stream.of(receiving, endedWhileReceiving, held.byRequest())
                .flatMap(pending -> pending.keySet().stream())
                .toList();
    }

    int receivingCount() {
        return receiving.size();
    }

    int heldCount() {
        return held.byRequest().size();
    }

    int heldBlocks() {
        return held.blocks();
    }

    /** Blocks that a transfer of a read that failed may still write. */
    int quarantinedBlocks() {
        return quarantined.blocks();
    }

    /** True while a read, or one that has not been given up, may write blocks of this engine. */
    boolean isReading() {
        return !receiving.isEmpty() || !endedWhileReceiving.isEmpty();
    }

    /**
     * True if no other engine has to do with this engine's blocks, apart from quarantined ones: for
     * those nobody can say when that ends, so who wants to give the memory back has to try.
     */
    boolean isQuiet() {
        return !isReading() && held.isEmpty();
    }

    /** True if no block is kept here, not even in quarantine. */
    boolean holdsNothing() {
        return isQuiet() && quarantined.isEmpty();
    }

    void onArrival(Sequence sequence) {
        if (connector != null) {
            connector.onArrival(sequence.connectorRequest());
        }
    }

    /** A request that can never be served: its producer, if it has one, is told. */
    void onRefused(ConnectorRequest request) {
        if (connector != null) {
            connector.onArrival(request);
            connector.onFinished(request, FinishKind.FAILED, new int[0], 0);
        }
    }

    /** How many tokens of the prompt could be read, beyond those that are here. */
    int externalTokens(Sequence sequence, int localTokens) {
        return connector != null && sequence.mayReadRemote() && !isQuarantineFull()
                ? connector.externalTokens(sequence.connectorRequest(), localTokens)
                : 0;
    }

    /** The sequence's blocks were allocated; if there is something to read, the read is ordered. */
    void onAllocated(Sequence sequence, int localTokens, int externalTokens) {
        if (connector == null) {
            return;
        }
        connector.onAllocated(
                sequence.connectorRequest(),
                sequence.blocks().toArray(),
                localTokens,
                externalTokens);
        if (externalTokens > 0) {
            receiving.put(sequence.id(), sequence);
        }
    }

    /**
     * The sequence ended: takes its blocks, and frees them now or when no other engine needs them.
     *
     * @return what the client shall hand to the engine that reads them, or null
     */
    @Nullable KvTransferParams onEnded(Sequence sequence, FinishKind kind) {
        HandOver handOver =
                connector == null
                        ? HandOver.NONE
                        : connector.onFinished(
                                sequence.connectorRequest(),
                                kind,
                                sequence.blocks().toArray(),
                                sequence.computed());
        if (receiving.remove(sequence.id()) != null) {
            endedWhileReceiving.put(sequence.id(), sequence.blocks());
        } else if (handOver.holdBlocks()) {
            held.put(sequence.id(), sequence.blocks());
        } else {
            blocks.free(sequence.blocks());
        }
        KvTransferParams params = handOver.params();
        return params != null && params.remotePrefill() ? sequence.describe(params) : params;
    }

    /**
     * Has holds end that nobody relies on, the oldest first, since so many blocks are missing.
     *
     * @return true if blocks will be free soon, though perhaps too few: others may share them
     */
    boolean makeRoom(int missingBlocks) {
        if (connector == null) {
            return false;
        }
        int coming = endingHolds.values().stream().mapToInt(BlockTable::size).sum();
        for (Map.Entry<String, BlockTable> hold : held.byRequest().entrySet()) {
            if (coming >= missingBlocks) {
                break;
            }
            if (!endingHolds.containsKey(hold.getKey()) && connector.endHold(hold.getKey())) {
                endingHolds.put(hold.getKey(), hold.getValue());
                coming += hold.getValue().size();
            }
        }
        return coming > 0;
    }

    /** Frees what the report releases, and tells which reads ended. */
    List<Received> onReport(WorkerReport report) {
        if (connector != null) {
            connector.onReport(report);
        }
        for (String id : report.finishedSending()) {
            endingHolds.remove(id);
            free(held.remove(id), id, "sent");
        }
        List<Received> ended = new ArrayList<>();
        for (String id : report.abandonedReceiving()) {
            @Nullable Sequence sequence = receiving.remove(id);
            if (sequence != null) {
                quarantine(id, sequence.giveUpBlocks());
                ended.add(new Received(sequence, Outcome.QUARANTINED, reason(report, id)));
            } else {
                quarantine(id, endedWhileReceiving.remove(id));
            }
        }
        for (String id : report.finishedReceiving()) {
            @Nullable Sequence sequence = receiving.remove(id);
            if (sequence != null) {
                boolean failed = report.failedReceiving().contains(id);
                ended.add(
                        new Received(
                                sequence,
                                failed ? Outcome.FAILED : Outcome.USABLE,
                                reason(report, id)));
            } else if (quarantined.byRequest().containsKey(id)) {
                free(quarantined.remove(id), id, "quarantined");
            } else {
                free(endedWhileReceiving.remove(id), id, "received");
            }
        }
        return ended;
    }

    private static String reason(WorkerReport report, String id) {
        return report.failureReasons().getOrDefault(id, "");
    }

    private void quarantine(String id, @Nullable BlockTable table) {
        if (table != null) {
            quarantined.put(id, table);
            LOG.log(
                    Level.WARNING,
                    "blocks in quarantine request={0} blocks={1} in_all={2}",
                    id,
                    table.size(),
                    quarantinedBlocks());
        }
    }

    /** A peer whose reads get stuck must not take all blocks: prompts are computed here then. */
    private boolean isQuarantineFull() {
        return !quarantined.isEmpty() && quarantinedBlocks() >= quarantineLimit;
    }

    private void free(@Nullable BlockTable table, String id, String what) {
        if (table == null) {
            LOG.log(Level.WARNING, "ignored a report of an unknown request {0}={1}", what, id);
        } else {
            blocks.free(table);
        }
    }
}
