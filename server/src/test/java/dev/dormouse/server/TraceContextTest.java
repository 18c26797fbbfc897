package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.http.TraceContext;
import io.helidon.http.HeaderNames;
import io.helidon.http.WritableHeaders;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which trace a request says that it belongs to. */
class TraceContextTest {
    private static final String TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

    private static Optional<String> trace(String header) {
        return TraceContext.traceId(
                WritableHeaders.create().set(HeaderNames.create("traceparent"), header));
    }

    @Test
    void itIsTheSecondField() {
        assertThat(trace("00-" + TRACE + "-00f067aa0ba902b7-01")).hasValue(TRACE);
        assertThat(trace("cc-" + TRACE + "-00f067aa0ba902b7-01-what-the-future-brings"))
                .hasValue(TRACE);
        assertThat(TraceContext.traceId(WritableHeaders.create())).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "x",
                "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                "00-4bf92f3577b34da6a3ce929d0e0e4736-01"
            })
    void whatIsNotInItsFormIsNone(String header) {
        assertThat(trace(header)).isEmpty();
    }
}
