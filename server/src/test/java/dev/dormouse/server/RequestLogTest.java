package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.http.RequestLog;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** What the log tells of each completion. */
class RequestLogTest {
    @Test
    void aLineTellsRequestOutcomeTimeAndTrace() {
        AtomicLong nanos = new AtomicLong(5_000_000_000L);
        RequestLog log =
                new RequestLog(
                        System.getLogger("dormouse.server"),
                        "/v1/completions",
                        "mine",
                        "4bf9",
                        nanos.get(),
                        nanos::get);
        nanos.addAndGet(1_250_000_000L);
        assertThat(log.line("length"))
                .isEqualTo(
                        "request ended: request=mine path=/v1/completions outcome=length seconds=1.250 trace=4bf9");
    }
}
