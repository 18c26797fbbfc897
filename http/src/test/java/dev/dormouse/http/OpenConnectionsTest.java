package dev.dormouse.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.dormouse.testkit.Await;
import io.helidon.webserver.WebServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class OpenConnectionsTest {
    private static final int MOST = 4;

    /** Of the request that came last. */
    private final AtomicReference<ClientConnection> asking = new AtomicReference<>();

    @Test
    void theLimitOfDescriptorsSetsTheirNumber() {
        assertThat(OpenConnections.most(1_048_576, 150)).isEqualTo(8192);
        assertThat(OpenConnections.most(1024, 124)).isEqualTo(300);
        assertThat(OpenConnections.most(256, 150)).isEqualTo(35);
        assertThatThrownBy(() -> OpenConnections.most(200, 150))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("200")
                .hasMessageContaining("at least 222")
                .hasMessageContaining("ulimit -n");
    }

    @Test
    void idleConnectionsGiveWayTheOldestFirstAndThoseThatAreServedStay() throws Exception {
        CountDownLatch asked = new CountDownLatch(1);
        CountDownLatch answer = new CountDownLatch(1);
        List<Socket> idle = new ArrayList<>();
        TimeLimits limits = new TimeLimits();
        WebServer server = server(limits, asked, answer);
        try (Socket served = connect(server)) {
            send(served, "/slow");
            asked.await();
            for (int i = 0; i < MOST - 1; i++) {
                idle.add(connect(server));
                ask(idle.getLast());
            }
            ask(idle.getFirst()); // so that the second is the oldest
            for (int i = 0; i < 3 * MOST; i++) {
                idle.add(connect(server));
                ask(idle.getLast());
                if (i == 0) {
                    assertThat(read(idle.get(1))).as("the oldest").isEmpty();
                    ask(idle.getFirst());
                }
            }
            assertThat(read(idle.getFirst())).isEmpty();
            answer.countDown();
            assertThat(read(served)).isEqualTo("HTTP/1.1 200");
        } finally {
            for (Socket socket : idle) {
                socket.close();
            }
            server.stop();
            limits.close();
        }
    }

    @Test
    void connectionsThatSayNothingKeepNobodyOut() throws Exception {
        List<Socket> silent = new ArrayList<>();
        TimeLimits limits = new TimeLimits();
        WebServer server = server(limits, new CountDownLatch(1), new CountDownLatch(0));
        try {
            for (int i = 0; i < 100; i++) {
                silent.add(connect(server));
            }
            try (Socket last = connect(server)) {
                send(last, "/");
                assertThat(read(last)).isEqualTo("HTTP/1.1 200");
            }
        } finally {
            for (Socket socket : silent) {
                socket.close();
            }
            server.stop();
            limits.close();
        }
    }

    private WebServer server(TimeLimits limits, CountDownLatch asked, CountDownLatch answer) {
        ClientConnections connections =
                new ClientConnections(
                        limits, Duration.ofMinutes(5), new OpenConnections(MOST, System::nanoTime));
        return WebServer.builder()
                .host("127.0.0.1")
                .port(0)
                .shutdownHook(false)
                .protocolsDiscoverServices(false)
                .addConnectionSelector(connections)
                .maxTcpConnections(connections.mostAccepted())
                .routing(
                        HttpListener.routing()
                                .any(
                                        (request, response) -> {
                                            ClientConnection connection =
                                                    ClientConnection.CURRENT.get();
                                            connection.requestBegins(request, response);
                                            asking.set(connection);
                                            if (request.path().path().equals("/slow")) {
                                                asked.countDown();
                                                answer.await();
                                            }
                                            response.send();
                                        }))
                .build()
                .start();
    }

    private static Socket connect(WebServer server) throws IOException {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port());
        socket.setSoTimeout(60_000);
        return socket;
    }

    /** Returns when the server has noticed, too, that its answer is out. */
    private void ask(Socket socket) throws IOException {
        send(socket, "/");
        assertThat(read(socket)).isEqualTo("HTTP/1.1 200");
        Await.until("the connection is idle", () -> asking.get().isIdle());
    }

    private static void send(Socket socket, String path) throws IOException {
        String request = "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
        socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
    }

    /** The status line's beginning, and the rest is read; nothing if the connection is closed. */
    private static String read(Socket socket) throws IOException {
        StringBuilder text = new StringBuilder();
        try {
            while (text.indexOf("\r\n\r\n") < 0) {
                int c = socket.getInputStream().read();
                if (c < 0) {
                    return text.toString();
                }
                text.append((char) c);
            }
        } catch (SocketException e) {
            return ""; // closed by a reset
        }
        return text.substring(0, "HTTP/1.1 200".length());
    }
}
