package dev.dormouse.connector;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.ProtocolException;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One end of a ZeroMQ connection: ZMTP 3.0 (rfc.zeromq.org/spec/23) with the NULL mechanism, as
 * much of it as a side channel needs. Every read has a deadline and a size limit, since both ends
 * may be hostile.
 *
 * <p>The Java library for ZeroMQ is not used here: random bytes behind a valid greeting make its
 * I/O thread spin for ever (JeroMQ 0.6.0, {@code DecoderBase.decode}).
 */
final class ZmtpConnection implements Closeable {
    private static final int GREETING_BYTES = 64;
    private static final int MORE = 1;
    private static final int LONG = 2;
    private static final int COMMAND = 4;
    private static final int MAX_COMMAND_BYTES = 512;
    private static final int MAX_FRAMES = 8;

    @SuppressWarnings("ArrayRecordComponent") // one owner, never compared
    private record Frame(int flags, byte[] body) {
        boolean is(int flag) {
            return (flags & flag) != 0;
        }
    }

    private final Socket socket;
    private final InputStream in;
    private final DataOutputStream out;
    private final int maxMessageBytes;
    private long deadlineNanos = System.nanoTime();

    /** A connection over {@code socket}, which it owns. */
    ZmtpConnection(Socket socket, int maxMessageBytes) throws IOException {
        this.socket = socket;
        this.in = new BufferedInputStream(socket.getInputStream());
        this.out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
        this.maxMessageBytes = maxMessageBytes;
        socket.setTcpNoDelay(true);
    }

    /** Reads end with an exception at this {@link System#nanoTime}. */
    void setDeadline(long nanoTime) {
        deadlineNanos = nanoTime;
    }

    /**
     * Greets, and tells the peer what kind of socket this is.
     *
     * @throws ProtocolException if the peer is no ZMTP 3 peer without security
     */
    void open(String socketType) throws IOException {
        byte[] greeting = new byte[GREETING_BYTES];
        greeting[0] = (byte) 0xff;
        greeting[9] = 0x7f;
        greeting[10] = 3;
        System.arraycopy("NULL".getBytes(US_ASCII), 0, greeting, 12, 4);
        out.write(greeting);
        out.flush();
        byte[] theirs = read(GREETING_BYTES);
        require(theirs[0] == (byte) 0xff && theirs[9] == 0x7f, "no ZMTP signature");
        require(theirs[10] >= 3, "ZMTP version " + theirs[10] + " is older than 3");
        require(
                Arrays.equals(theirs, 12, 32, greeting, 12, 32),
                "the peer asks for a security mechanism");
        writeFrame(COMMAND, ready(socketType));
        out.flush();
        byte[] command = readFrame(MAX_COMMAND_BYTES, true).body();
        require(
                command.length > 5 && new String(command, 0, 6, US_ASCII).equals("\5READY"),
                "no READY command");
    }

    /** The next message's frames, commands passed over; null at the end of the stream. */
    @Nullable List<byte[]> receive() throws IOException {
        List<byte[]> frames = new ArrayList<>();
        int left = maxMessageBytes;
        while (true) {
            Frame frame = readFrameOrEnd(left, frames.isEmpty());
            if (frame == null) {
                return null;
            }
            if (frame.is(COMMAND)) {
                continue;
            }
            frames.add(frame.body());
            left -= frame.body().length;
            if (!frame.is(MORE)) {
                return frames;
            }
            require(frames.size() < MAX_FRAMES, "more than " + MAX_FRAMES + " frames");
        }
    }

    /** Sends one message. The frames are not copied. */
    void send(List<byte[]> frames) throws IOException {
        for (int i = 0; i < frames.size(); i++) {
            writeFrame(i + 1 < frames.size() ? MORE : 0, frames.get(i));
        }
        out.flush();
    }

    /** True if something has come that was not received. Does not wait. */
    boolean hasUnread() throws IOException {
        return in.available() > 0;
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    private Frame readFrame(int maxBytes, boolean command) throws IOException {
        Frame frame = readFrameOrEnd(maxBytes, false);
        if (frame == null || frame.is(COMMAND) != command) {
            throw new ProtocolException("ZMTP: not the expected command");
        }
        return frame;
    }

    private @Nullable Frame readFrameOrEnd(int maxBytes, boolean mayEnd) throws IOException {
        int flags = readByte();
        if (flags < 0 && mayEnd) {
            return null;
        }
        require(
                flags >= 0 && flags <= 7 && (flags & (MORE | COMMAND)) != (MORE | COMMAND),
                "flags " + flags);
        long size = 0;
        for (byte part : read((flags & LONG) != 0 ? 8 : 1)) {
            size = size << 8 | (part & 0xff);
        }
        int limit = (flags & COMMAND) != 0 ? MAX_COMMAND_BYTES : maxBytes;
        require(size >= 0 && size <= limit, "a frame of " + size + " bytes, limit " + limit);
        return new Frame(flags, read((int) size));
    }

    private int readByte() throws IOException {
        armTimeout();
        return in.read();
    }

    private byte[] read(int length) throws IOException {
        byte[] bytes = new byte[length];
        for (int done = 0; done < length; ) {
            armTimeout();
            int count = in.read(bytes, done, length - done);
            require(count >= 0, "the stream ends inside a frame");
            done += count;
        }
        return bytes;
    }

    private void armTimeout() throws IOException {
        long leftMillis = (deadlineNanos - System.nanoTime()) / 1_000_000;
        if (leftMillis < 1) {
            throw new SocketTimeoutException("no answer in time");
        }
        socket.setSoTimeout((int) Math.min(leftMillis, Integer.MAX_VALUE));
    }

    private void writeFrame(int flags, byte[] body) throws IOException {
        if (body.length > 255) {
            out.writeByte(flags | LONG);
            out.writeLong(body.length);
        } else {
            out.writeByte(flags);
            out.writeByte(body.length);
        }
        out.write(body);
    }

    private static byte[] ready(String socketType) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        writeShort(out, "READY");
        writeShort(out, "Socket-Type");
        out.writeInt(socketType.length());
        out.writeBytes(socketType);
        writeShort(out, "Identity");
        out.writeInt(0);
        return bytes.toByteArray();
    }

    private static void writeShort(DataOutputStream out, String name) throws IOException {
        out.writeByte(name.length());
        out.writeBytes(name);
    }

    private static void require(boolean condition, String problem) throws ProtocolException {
        if (!condition) {
            throw new ProtocolException("ZMTP: " + problem);
        }
    }
}
