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

    private final @Nullable SchedulerConnector connector;
    private final BlockManager blocks;
    private final Map<String, Sequence> receiving = new LinkedHashMap<>();
    private final Map<String, BlockTable> endedWhileReceiving = new HashMap<>();
    private final Map<String, BlockTable> held = new HashMap<>();

    RemoteKv(@Nullable SchedulerConnector connector, BlockManager blocks) {
        this.connector = connector;
        this.blocks = blocks;
    }

    /**
     * A read that ended.
     *
     * @param usable whether its blocks hold what was asked for
     */
    record Received(Sequence sequence, boolean usable) {}

    /** The engine's ids of what keeps it from being {@linkplain #isQuiet() quiet}. */
    List<String> pendingIds() {
        return Stream.of(receiving, endedWhileReceiving, held)
                .flatMap(pending -> pending.keySet().stream())
                .toList();
    }

    int receivingCount() {
        return receiving.size();
    }

    int heldCount() {
        return held.size();
    }

    /** True while a transfer may write blocks of this engine. */
    boolean isReading() {
        return !receiving.isEmpty() || !endedWhileReceiving.isEmpty();
    }

    /** True if no other engine has to do with this engine's blocks. */
    boolean isQuiet() {
        return !isReading() && held.isEmpty();
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
        return connector != null && sequence.mayReadRemote()
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
        return handOver.params();
    }

    /** Frees what the report releases, and tells which reads ended. */
    List<Received> onReport(WorkerReport report) {
        if (connector != null) {
            connector.onReport(report);
        }
        for (String id : report.finishedSending()) {
            free(held.remove(id), id, "sent");
        }
        List<Received> ended = new ArrayList<>();
        for (String id : report.finishedReceiving()) {
            @Nullable Sequence sequence = receiving.remove(id);
            if (sequence != null) {
                ended.add(new Received(sequence, !report.failedReceiving().contains(id)));
            } else {
                free(endedWhileReceiving.remove(id), id, "received");
            }
        }
        return ended;
    }

    private void free(@Nullable BlockTable table, String id, String what) {
        if (table == null) {
            LOG.log(Level.WARNING, "ignored a report of an unknown request {0}={1}", what, id);
        } else {
            blocks.free(table);
        }
    }
}
