package dev.dormouse.router;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.router.routing.Json;
import dev.dormouse.testkit.Await;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * An engine on a real socket that answers as its script says. {@code /health} and {@code /ready}
 * are answered without the script; everything else is recorded first.
 */
final class FakeEngine implements AutoCloseable {
    /** Serves one request. */
    @FunctionalInterface
    interface Script {
        void serve(Call call) throws IOException;
    }

    /** A request as it came over the wire; header names are in lower case. */
    record Request(String method, String path, Map<String, List<String>> headers, String body) {
        JsonNode json() {
            try {
                return Json.read(body.getBytes(StandardCharsets.UTF_8));
            } catch (IOException e) {
                throw new AssertionError("not JSON: " + body, e);
            }
        }

        List<String> header(String name) {
            return headers.getOrDefault(name, List.of());
        }
    }

    private final ServerSocket listener;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private final List<Request> requests = new CopyOnWriteArrayList<>();
    private final Script script;
    private final AtomicInteger checks = new AtomicInteger();
    private final AtomicInteger requestsBesideChecks = new AtomicInteger();
    private volatile int healthStatus = 200;
    private volatile int readyStatus = 200;

    FakeEngine(Script script) {
        this(0, script);
    }

    FakeEngine(int port, Script script) {
        this.script = script;
        try {
            listener = new ServerSocket(port, 50, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new AssertionError("fake engine cannot listen", e);
        }
        Thread.ofVirtual().name("fake-engine").start(this::accept);
    }

    URI url() {
        return URI.create("http://127.0.0.1:" + port());
    }

    int port() {
        return listener.getLocalPort();
    }

    /** What came so far, without health checks. */
    List<Request> requests() {
        return List.copyOf(requests);
    }

    /** The only request so far. */
    Request request() {
        List<Request> all = requests();
        if (all.size() != 1) {
            throw new AssertionError("expected one request, saw " + all);
        }
        return all.getFirst();
    }

    void awaitRequests(int count) {
        Await.until(count + " requests at the engine", () -> requests.size() >= count);
    }

    /** Waits for more health checks than came so far. */
    void awaitChecks(int more) {
        int seen = checks.get();
        Await.until(more + " health checks", () -> checks.get() - seen >= more);
    }

    /** How many requests came over a connection that had brought a health check. */
    int requestsBesideChecks() {
        return requestsBesideChecks.get();
    }

    void healthStatus(int status) {
        healthStatus = status;
    }

    /** What {@code /ready} answers while the engine is alive. */
    void readyStatus(int status) {
        readyStatus = status;
    }

    /** Dies as by kill -9: all its connections break. */
    @Override
    public void close() {
        try {
            listener.close();
        } catch (IOException e) {
            throw new AssertionError(e);
        }
        sockets.forEach(FakeEngine::reset);
    }

    private void accept() {
        while (true) {
            try {
                Socket socket = listener.accept();
                socket.setTcpNoDelay(true);
                sockets.add(socket);
                if (listener.isClosed()) {
                    reset(socket);
                }
                Thread.ofVirtual().name("fake-engine-connection").start(() -> serve(socket));
            } catch (IOException e) {
                return;
            }
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            InputStream in = new BufferedInputStream(socket.getInputStream());
            boolean checked = false;
            while (true) {
                Request request = read(in);
                Call call = new Call(request, socket, in);
                if (request.path().equals("/health")) {
                    call.answer(healthStatus, "text/plain", "");
                } else if (request.path().equals("/ready")) {
                    checked = true;
                    checks.incrementAndGet();
                    int status = healthStatus == 200 ? readyStatus : healthStatus;
                    call.answer(status, "text/plain", "");
                } else {
                    requestsBesideChecks.addAndGet(checked ? 1 : 0);
                    requests.add(request);
                    script.serve(call);
                }
            }
        } catch (IOException e) {
            // The router closed the connection, or the script reset it.
        } finally {
            sockets.remove(socket);
        }
    }

    private static Request read(InputStream in) throws IOException {
        String[] first = readLine(in).split(" ", -1);
        Map<String, List<String>> headers = new TreeMap<>();
        for (String line = readLine(in); !line.isEmpty(); line = readLine(in)) {
            int colon = line.indexOf(':');
            headers.computeIfAbsent(
                            line.substring(0, colon).toLowerCase(Locale.ROOT),
                            _ -> new ArrayList<>())
                    .add(line.substring(colon + 1).strip());
        }
        int length = Integer.parseInt(headers.getOrDefault("content-length", List.of("0")).get(0));
        byte[] body = in.readNBytes(length);
        return new Request(first[0], first[1], headers, new String(body, StandardCharsets.UTF_8));
    }

    private static String readLine(InputStream in) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int b = in.read(); b != '\n'; b = in.read()) {
            if (b < 0) {
                throw new EOFException();
            }
            line.write(b);
        }
        return line.toString(StandardCharsets.ISO_8859_1).stripTrailing();
    }

    private static void reset(Socket socket) {
        try {
            socket.setSoLinger(true, 0);
            socket.close();
        } catch (IOException e) {
            // It was closed already.
        }
    }

    /** One request being served. */
    static final class Call {
        private final Request request;
        private final Socket socket;
        private final InputStream in;

        private Call(Request request, Socket socket, InputStream in) {
            this.request = request;
            this.socket = socket;
            this.in = in;
        }

        Request request() {
            return request;
        }

        /** A whole answer; {@code headers} are complete lines. */
        void answer(int status, String contentType, String body, String... headers)
                throws IOException {
            byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
            head(status, contentType, "Content-Length: " + bytes.length, headers);
            raw(body);
        }

        void json(int status, String body, String... headers) throws IOException {
            answer(status, "application/json", body, headers);
        }

        /** Status and headers of an event stream in chunks. */
        void startEvents() throws IOException {
            head(200, "text/event-stream; charset=utf-8", "Transfer-Encoding: chunked");
        }

        /** One chunk. */
        void chunk(String text) throws IOException {
            int length = text.getBytes(StandardCharsets.UTF_8).length;
            raw(Integer.toHexString(length) + "\r\n" + text + "\r\n");
        }

        /** The proper end of a chunked body. */
        void lastChunk() throws IOException {
            raw("0\r\n\r\n");
        }

        void head(int status, String contentType, String framing, String... headers)
                throws IOException {
            StringBuilder head = new StringBuilder("HTTP/1.1 " + status + " X\r\n");
            head.append("Content-Type: ").append(contentType).append("\r\n");
            head.append(framing).append("\r\n");
            for (String header : headers) {
                head.append(header).append("\r\n");
            }
            raw(head.append("\r\n").toString());
        }

        void raw(String text) throws IOException {
            OutputStream out = socket.getOutputStream();
            out.write(text.getBytes(StandardCharsets.UTF_8));
            out.flush();
        }

        /** Closes the connection wherever the answer stands; what was sent still arrives. */
        void hangUp() throws IOException {
            socket.close();
        }

        /** Breaks the connection; what was sent may be lost. */
        void reset() throws IOException {
            FakeEngine.reset(socket);
        }

        /** Returns when the router has closed this connection. */
        void awaitClosed() {
            try {
                if (in.read() >= 0) {
                    throw new AssertionError("the router sent more than its request");
                }
            } catch (IOException e) {
                // A reset is a close as well.
            }
        }
    }
}
