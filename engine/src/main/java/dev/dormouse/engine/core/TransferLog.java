package dev.dormouse.engine.core;

import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.connector.TransferSummary;
import java.time.Duration;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/** Says now and then what KV transfers were like; nothing if there were none. */
final class TransferLog {
    /** As vLLM's {@code VLLM_LOG_STATS_INTERVAL}. */
    private static final long INTERVAL_NANOS = Duration.ofSeconds(10).toNanos();

    private static final String NOTHING = TransferSummary.of(TransferStatistics.NONE).toString();

    private final LongSupplier nanoClock;
    private final Consumer<String> log;
    private TransferStatistics pending = TransferStatistics.NONE;
    private long since;

    TransferLog(LongSupplier nanoClock, Consumer<String> log) {
        this.nanoClock = nanoClock;
        this.log = log;
    }

    void add(TransferStatistics interval) {
        if (pending.isEmpty()) {
            since = nanoClock.getAsLong();
        }
        pending = pending.plus(interval);
    }

    /** Says it if it is time. */
    void flush() {
        if (!pending.isEmpty() && nanoClock.getAsLong() - since >= INTERVAL_NANOS) {
            String summary = TransferSummary.of(pending).toString();
            if (!summary.equals(NOTHING)) { // as it is after a handshake
                log.accept(summary);
            }
            pending = TransferStatistics.NONE;
        }
    }
}
