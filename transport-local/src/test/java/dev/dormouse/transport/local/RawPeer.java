package dev.dormouse.transport.local;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.SocketMessage;
import dev.dormouse.foreign.UnixSocket;
import dev.dormouse.testkit.Await;
import java.util.OptionalInt;

/** One end of a connection that sends whatever the test wants. */
final class RawPeer implements AutoCloseable {
    private final int socket;
    private final SocketMessage message =
            new SocketMessage(Frame.MAX_BYTES, SocketMessage.MAX_DESCRIPTORS);
    private boolean open = true;

    RawPeer(int socket) {
        this.socket = socket;
    }

    /** Connects to an agent's socket. */
    static RawPeer connect(LocalMetadata metadata) {
        OptionalInt[] socket = {OptionalInt.empty()};
        Await.until(
                "a connection",
                () -> {
                    socket[0] = UnixSocket.connect(metadata.socketName());
                    return socket[0].isPresent();
                });
        return new RawPeer(socket[0].orElseThrow());
    }

    void send(Frame frame, int... descriptors) {
        send(frame.encode(), descriptors);
    }

    void send(byte[] bytes, int... descriptors) {
        Await.until("room to send", () -> message.send(socket, bytes, descriptors));
    }

    /** The next message. */
    SocketMessage.Received.Message receive() {
        return (SocketMessage.Received.Message) next();
    }

    /** Waits until the other side has ended the connection. */
    void awaitEnd() {
        while (!(next() instanceof SocketMessage.Received.End)) {
            // what was sent before the end
        }
    }

    private SocketMessage.Received next() {
        SocketMessage.Received[] received = {new SocketMessage.Received.Nothing()};
        Await.until(
                "a message",
                () -> {
                    received[0] = message.receive(socket);
                    return !(received[0] instanceof SocketMessage.Received.Nothing);
                });
        return received[0];
    }

    @Override
    public void close() {
        if (open) {
            open = false;
            Libc.close(socket);
            message.close();
        }
    }
}
