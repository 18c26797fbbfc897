package dev.dormouse.engine.core;

import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.connector.TransferStatistics.TransferSample;
import dev.dormouse.connector.TransferSummary;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/** Says now and then what KV transfers were like; nothing if there were none. */
final class TransferLog {
    /** As vLLM's {@code VLLM_LOG_STATS_INTERVAL}. */
    private static final long INTERVAL_NANOS = Duration.ofSeconds(10).toNanos();

    /** A line needs each of its transfers, so more of them are a line before its time. */
    private static final int MAX_TRANSFERS = 10_000;

    private static final String NOTHING = TransferSummary.of(TransferStatistics.NONE).toString();

    private final LongSupplier nanoClock;
    private final Consumer<String> log;
    private final List<TransferSample> transfers = new ArrayList<>();
    private TransferStatistics counts = TransferStatistics.NONE;
    private long since;

    TransferLog(LongSupplier nanoClock, Consumer<String> log) {
        this.nanoClock = nanoClock;
        this.log = log;
    }

    void add(TransferStatistics interval) {
        if (isEmpty()) {
            since = nanoClock.getAsLong();
        }
        counts = counts.plus(interval.withTransfers(List.of()));
        for (TransferSample transfer : interval.transfers()) {
            transfers.add(transfer);
            if (transfers.size() == MAX_TRANSFERS) {
                say();
                since = nanoClock.getAsLong();
            }
        }
    }

    /** Says it if it is time. */
    void flush() {
        if (!isEmpty() && nanoClock.getAsLong() - since >= INTERVAL_NANOS) {
            say();
        }
    }

    private boolean isEmpty() {
        return transfers.isEmpty() && counts.isEmpty();
    }

    private void say() {
        String summary = TransferSummary.of(counts.withTransfers(transfers)).toString();
        if (!summary.equals(NOTHING)) { // as it is after a handshake
            log.accept(summary);
        }
        transfers.clear();
        counts = TransferStatistics.NONE;
    }
}
