package dev.dormouse.router;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** A client that sees every byte and leaves when it likes. */
final class RawClient implements AutoCloseable {
    private static final int READ_LIMIT_MILLIS = 30_000;

    private final Socket socket;

    RawClient(int port) throws IOException {
        socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setSoTimeout(READ_LIMIT_MILLIS);
        socket.setTcpNoDelay(true);
    }

    void send(String text) throws IOException {
        socket.getOutputStream().write(text.getBytes(StandardCharsets.UTF_8));
        socket.getOutputStream().flush();
    }

    /** Sends a whole POST of JSON; {@code headers} are complete lines. */
    void post(String path, String body, String... headers) throws IOException {
        StringBuilder request = new StringBuilder("POST " + path + " HTTP/1.1\r\n");
        request.append("Host: router\r\nContent-Type: application/json; charset=utf-8\r\n");
        for (String header : headers) {
            request.append(header).append("\r\n");
        }
        int length = body.getBytes(StandardCharsets.UTF_8).length;
        request.append("Content-Length: ").append(length).append("\r\n\r\n").append(body);
        send(request.toString());
    }

    /** Reads until {@code text} has come; fails if the stream ends or stalls before. */
    String readUntil(String text) throws IOException {
        ByteArrayOutputStream seen = new ByteArrayOutputStream();
        InputStream in = socket.getInputStream();
        while (!seen.toString(StandardCharsets.UTF_8).endsWith(text)) {
            int b = in.read();
            if (b < 0) {
                throw new AssertionError("stream ended before " + text + ": " + seen);
            }
            seen.write(b);
        }
        return seen.toString(StandardCharsets.UTF_8);
    }

    /** Reads to the end of the stream; a reset counts as one. */
    String readToEnd() {
        ByteArrayOutputStream seen = new ByteArrayOutputStream();
        try {
            InputStream in = socket.getInputStream();
            for (int b = in.read(); b >= 0; b = in.read()) {
                seen.write(b);
            }
        } catch (java.net.SocketTimeoutException e) {
            throw new AssertionError("stream did not end: " + seen, e);
        } catch (IOException e) {
            // The end, by reset.
        }
        return seen.toString(StandardCharsets.UTF_8);
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
