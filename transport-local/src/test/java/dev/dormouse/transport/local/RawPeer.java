package dev.dormouse.transport.local;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.LibcException;
import dev.dormouse.foreign.SocketMessage;
import dev.dormouse.foreign.UnixSocket;
import dev.dormouse.testkit.Await;
import java.util.OptionalInt;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;

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

    /**
     * Lets a thread answer the next one who connects and asks.
     *
     * @return at zero once it has answered, or the other side has given up before
     */
    static CountDownLatch answerNext(int listener, Consumer<RawPeer> answer) {
        CountDownLatch answered = new CountDownLatch(1);
        Thread.ofPlatform()
                .name("dormouse-test-owner")
                .start(
                        () -> {
                            OptionalInt[] socket = {OptionalInt.empty()};
                            Await.until(
                                    "the reader",
                                    () -> {
                                        socket[0] = UnixSocket.accept(listener);
                                        return socket[0].isPresent();
                                    });
                            try (RawPeer raw = new RawPeer(socket[0].orElseThrow())) {
                                raw.receive();
                                answer.accept(raw);
                            } catch (LibcException e) {
                                // The reader has given up before all was said.
                            } finally {
                                answered.countDown();
                            }
                        });
        return answered;
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

    /** Waits until the other side has given everything back, or has ended. */
    void awaitReleased() {
        boolean released = false;
        while (!released) {
            released =
                    !(next() instanceof SocketMessage.Received.Message message)
                            || Frame.decode(message.bytes()) instanceof Frame.Released;
        }
    }

    /** The next message, or the end. */
    SocketMessage.Received next() {
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
