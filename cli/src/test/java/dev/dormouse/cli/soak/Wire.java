package dev.dormouse.cli.soak;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** A client's connection, HTTP/1.1 by hand, so that it can be left at any byte. */
final class Wire implements AutoCloseable {
    private final Socket socket;
    private final InputStream in;

    /**
     * A whole answer.
     *
     * @param closes whether the server says that it closes the connection
     */
    record Answer(int status, Map<String, String> headers, String body, boolean closes) {}

    Wire(int port, int silenceMillis) throws IOException {
        socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setSoTimeout(silenceMillis);
        socket.setTcpNoDelay(true);
        in = new BufferedInputStream(socket.getInputStream());
    }

    /** The text of a POST of JSON. */
    static String post(String path, String requestId, String body) {
        return "POST "
                + path
                + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Request-Id: "
                + requestId
                + "\r\nContent-Length: "
                + body.getBytes(StandardCharsets.UTF_8).length
                + "\r\n\r\n"
                + body;
    }

    /** The body that a GET gives. */
    static String get(int port, String path) throws IOException {
        try (Wire wire = new Wire(port, 60_000)) {
            wire.send("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            Answer answer = wire.read();
            if (answer.status() != 200) {
                throw new IOException(path + " is answered " + answer);
            }
            return answer.body();
        }
    }

    void send(String text) throws IOException {
        socket.getOutputStream().write(text.getBytes(StandardCharsets.UTF_8));
        socket.getOutputStream().flush();
    }

    /**
     * Reads one answer.
     *
     * @throws IOException if it stops in the middle, or nothing comes for too long
     */
    Answer read() throws IOException {
        String[] status = line().split(" ", 3);
        if (status.length < 2 || !status[0].equals("HTTP/1.1")) {
            throw new IOException("not an answer: " + String.join(" ", status));
        }
        Map<String, String> headers = new TreeMap<>();
        for (String line = line(); !line.isEmpty(); line = line()) {
            int colon = line.indexOf(':');
            headers.put(
                    line.substring(0, colon).toLowerCase(Locale.ROOT),
                    line.substring(colon + 1).strip());
        }
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        if ("chunked".equals(headers.get("transfer-encoding"))) {
            readChunks(body);
        } else {
            readExactly(Integer.parseInt(headers.getOrDefault("content-length", "0")), body);
        }
        return new Answer(
                Integer.parseInt(status[1]),
                headers,
                body.toString(StandardCharsets.UTF_8),
                "close".equalsIgnoreCase(headers.get("connection")));
    }

    private void readChunks(ByteArrayOutputStream body) throws IOException {
        while (true) {
            int size = Integer.parseInt(line().split(";", 2)[0].strip(), 16);
            readExactly(size, body);
            if (!line().isEmpty()) {
                throw new IOException("a chunk is longer than it says");
            }
            if (size == 0) {
                return;
            }
        }
    }

    private void readExactly(int bytes, ByteArrayOutputStream into) throws IOException {
        byte[] piece = in.readNBytes(bytes);
        into.writeBytes(piece);
        if (piece.length < bytes) {
            throw new EOFException("the connection ended in the middle of an answer: " + into);
        }
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        while (true) {
            int c = in.read();
            if (c < 0) {
                throw new EOFException("the connection ended in a line: `" + line + "`");
            }
            if (c == '\n') {
                return line.toString();
            }
            if (c != '\r') {
                line.append((char) c);
            }
        }
    }

    /** Reads for a while, whatever comes, then leaves: with a reset, or as if all were said. */
    void leaveAfter(int millis, boolean reset) throws IOException {
        socket.setSoTimeout(Math.max(1, millis));
        byte[] ignored = new byte[1 << 10];
        long deadline = System.nanoTime() + millis * 1_000_000L;
        try {
            while (System.nanoTime() - deadline < 0 && in.read(ignored) >= 0) {}
        } catch (SocketTimeoutException e) {
            // It is time.
        }
        if (reset) {
            socket.setSoLinger(true, 0);
        }
        socket.close();
    }

    /** What comes until the server closes the connection. */
    String rest() throws IOException {
        return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
