package dev.dormouse.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Requests that end, or go wrong, on the wire: the client's fault, and never the server's. */
class BrokenBodyTest extends ServerFixture {
    private static final String POST = "POST /v1/completions HTTP/1.1\r\nHost: x\r\n";

    @ParameterizedTest
    @ValueSource(strings = {"ZZ\r\n{}\r\n", "FFFFFFFFFFFFFFFF\r\n{}\r\n", "-5\r\n{}\r\n"})
    void chunksThatAreNoneAreABadRequest(String chunk) throws Exception {
        String answer = exchange(POST + "Transfer-Encoding: chunked\r\n\r\n" + chunk, false);
        assertThat(answer)
                .startsWith("HTTP/1.1 400 ")
                .contains("the body's chunks are malformed")
                .containsIgnoringCase("\r\nConnection: close\r\n")
                .doesNotContainIgnoringCase("keep-alive")
                .endsWith("}}");
        assertThat(engine.requests).isEmpty();
    }

    /** Whatever follows may be what the sender means by its body. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
                "Content-Length: 99999999\r\n\r\n",
                "Connection: close\r\nContent-Length: 2\r\n\r\n{}"
            })
    void nothingIsTakenForARequestAfterTheLastOne(String last) throws Exception {
        String good = "{\"prompt\":\"x\"}";
        String next = POST + "Content-Length: " + good.length() + "\r\n\r\n" + good;

        assertThat(exchange(POST + last + next, false)).containsOnlyOnce("HTTP/1.1 ");
        assertThat(exchange(next + POST + last + next, false).split("HTTP/1.1 ", -1)).hasSize(3);
        assertThat(engine.requests).hasSize(1);
    }

    @Test
    void aClientThatLeavesInItsRequestIsNoFailureOfTheServers() throws Exception {
        try (Warnings warnings = new Warnings()) {
            for (String part :
                    new String[] {
                        "POST /v1/comp",
                        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Le",
                        POST + "Content-Length: 50\r\n\r\n{\"prompt\":\"x\"}",
                        POST + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a",
                        POST + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n"
                    }) {
                assertThat(exchange(part, true)).as(part).isEmpty();
            }
            assertThat(warnings.messages).isEmpty();
        }
        assertThat(engine.requests).isEmpty();
        post(200, "/v1/completions", "{\"prompt\":\"x\"}");
    }

    /** Sends bytes, leaves if told so, and reads until the server closes. */
    private String exchange(String request, boolean leaves) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.setSoTimeout(30_000);
            socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
            if (leaves) {
                socket.shutdownOutput();
            }
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
        }
    }

    /** What is logged as a warning or worse. */
    private static final class Warnings extends Handler implements AutoCloseable {
        private final Logger root = Logger.getLogger("");
        final Queue<String> messages = new ConcurrentLinkedQueue<>();

        Warnings() {
            root.addHandler(this);
        }

        @Override
        public void publish(LogRecord event) {
            if (event.getLevel().intValue() >= Level.WARNING.intValue()) {
                messages.add(event.getLoggerName() + ": " + event.getMessage());
            }
        }

        @Override
        public void flush() {}

        @Override
        public void close() {
            root.removeHandler(this);
        }
    }
}
