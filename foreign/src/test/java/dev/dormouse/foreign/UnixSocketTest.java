package dev.dormouse.foreign;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class UnixSocketTest {
    private static final int MAX_BYTES = 1000;
    private static final int MAX_DESCRIPTORS = 4;
    private static final int LONG_MILLIS = 20_000;

    private final String name = "dormouse-test-" + UUID.randomUUID();
    private final SocketMessage message = new SocketMessage(MAX_BYTES, MAX_DESCRIPTORS);
    private final List<Integer> open = new ArrayList<>();
    private int listener;
    private int here;
    private int there;

    @BeforeEach
    void connect() {
        listener = opened(UnixSocket.listen(name, 1));
        here = opened(UnixSocket.connect(name).orElseThrow());
        there = opened(UnixSocket.accept(listener).orElseThrow());
    }

    @AfterEach
    void close() {
        open.forEach(Libc::close);
        message.close();
        message.close();
    }

    private int opened(int fd) {
        open.add(fd);
        return fd;
    }

    private void closeNow(int fd) {
        open.remove(Integer.valueOf(fd));
        Libc.close(fd);
    }

    private SocketMessage.Received.Message received(int fd) {
        return (SocketMessage.Received.Message) message.receive(fd);
    }

    @Test
    void messagesKeepTheirBoundsAndCarryFiles() {
        int file = opened(Libc.createMemoryFile("socket-test", Libc.MFD_ALLOW_SEALING));
        assertThat(message.send(here, new byte[] {1, 2, 3}, file, here)).isTrue();
        assertThat(message.send(here, new byte[] {4})).isTrue();

        SocketMessage.Received.Message first = received(there);
        assertThat(first.bytes()).containsExactly(1, 2, 3);
        assertThat(first.cut()).isFalse();
        assertThat(first.descriptors()).hasSize(2);
        Arrays.stream(first.descriptors()).forEach(this::opened);
        assertThat(MemoryFile.status(first.descriptors()[0])).isEqualTo(MemoryFile.status(file));
        assertThat(received(there).bytes()).containsExactly(4);
        assertThat(message.receive(there)).isEqualTo(new SocketMessage.Received.Nothing());
    }

    @Test
    void whatDoesNotFitIsCutAndSaidToBe() {
        int[] files =
                IntStream.generate(() -> opened(Libc.createMemoryFile("socket-test", 0)))
                        .limit(10)
                        .toArray();
        try (SocketMessage larger = new SocketMessage(2 * MAX_BYTES, 10)) {
            assertThat(larger.send(here, new byte[MAX_BYTES + 1])).isTrue();
            assertThat(larger.send(here, new byte[1], files)).isTrue();
        }
        assertThat(received(there).cut()).isTrue();
        SocketMessage.Received.Message withFiles = received(there);
        assertThat(withFiles.cut()).isTrue();
        assertThat(withFiles.descriptors()).hasSize(MAX_DESCRIPTORS);
        Arrays.stream(withFiles.descriptors()).forEach(this::opened);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> message.send(here, new byte[MAX_BYTES + 1]));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> message.send(here, new byte[1], files));
        assertThatIllegalArgumentException().isThrownBy(() -> message.send(here, new byte[0]));
    }

    @Test
    void whoTakesNoFilesIsGivenNone() {
        try (SocketMessage plain = new SocketMessage(MAX_BYTES, 0)) {
            assertThat(message.send(here, new byte[1], listener)).isTrue();
            assertThat(plain.receive(there))
                    .isInstanceOfSatisfying(
                            SocketMessage.Received.Message.class,
                            got -> {
                                assertThat(got.descriptors()).isEmpty();
                                assertThat(got.cut()).isTrue();
                            });
        }
    }

    @Test
    void whatWasSentBeforeTheEndArrivesAlsoIfSomethingWasLeftUnread() {
        assertThat(message.send(there, new byte[] {9})).isTrue();
        assertThat(message.send(here, new byte[] {1})).isTrue();
        closeNow(here);
        assertThat(received(there).bytes()).containsExactly(1);
        assertThat(message.receive(there)).isEqualTo(new SocketMessage.Received.End());
        assertThatExceptionOfType(LibcException.class)
                .isThrownBy(() -> message.send(there, new byte[1]))
                .satisfies(e -> assertThat(e.errnoName()).isEqualTo("EPIPE"));
    }

    @Test
    void noCallWaits() {
        byte[] bytes = new byte[MAX_BYTES];
        int sent = 0;
        while (message.send(here, bytes)) {
            sent++;
        }
        assertThat(sent).isPositive();
        assertThat(UnixSocket.accept(listener)).isEmpty();
        int connected = 0;
        for (var more = UnixSocket.connect(name);
                more.isPresent();
                more = UnixSocket.connect(name)) {
            opened(more.getAsInt());
            connected++;
        }
        assertThat(connected).isPositive();
    }

    @Test
    void eachSideSeesTheOthersUserAndProcess() {
        for (int side : new int[] {here, there}) {
            PeerCredentials peer = UnixSocket.credentials(side);
            assertThat(peer.pid()).isEqualTo((int) ProcessHandle.current().pid());
            assertThat(peer.uid()).isEqualTo(UnixSocket.user());
        }
        try (PollSet polls = new PollSet()) {
            polls.add(opened(UnixSocket.process(there)), PollSet.POLLIN);
            polls.await(0);
            assertThat(polls.ready(0)).as("this process runs").isZero();
        }
    }

    @Test
    void aProcessDescriptorTellsTheEnd() throws Exception {
        Process child = new ProcessBuilder("sleep", "100").start();
        try (PollSet polls = new PollSet()) {
            polls.add(opened(UnixSocket.openProcess((int) child.pid())), PollSet.POLLIN);
            polls.await(0);
            assertThat(polls.ready(0)).isZero();
            child.destroyForcibly();
            polls.await(LONG_MILLIS);
            assertThat(polls.ready(0) & PollSet.POLLIN).isEqualTo(PollSet.POLLIN);
        }
        child.waitFor();
        assertThatExceptionOfType(LibcException.class)
                .isThrownBy(() -> UnixSocket.openProcess((int) child.pid()))
                .satisfies(e -> assertThat(e.errnoName()).isEqualTo("ESRCH"));
    }

    @Test
    void aNameIsTakenOnceAndGoneWithItsSocket() {
        assertThatExceptionOfType(LibcException.class)
                .isThrownBy(() -> UnixSocket.listen(name, 1))
                .satisfies(e -> assertThat(e.errnoName()).isEqualTo("EADDRINUSE"));
        closeNow(listener);
        assertThatExceptionOfType(LibcException.class)
                .isThrownBy(() -> UnixSocket.connect(name))
                .satisfies(e -> assertThat(e.errnoName()).isEqualTo("ECONNREFUSED"));
        String longest = "x".repeat(UnixSocket.MAX_NAME_BYTES - name.length()) + name;
        opened(UnixSocket.listen(longest, 1));
        opened(UnixSocket.connect(longest).orElseThrow());
        assertThatIllegalArgumentException().isThrownBy(() -> UnixSocket.listen(longest + "x", 1));
    }

    @Test
    void aWaitEndsWithWhatIsReadyHoweverManyAreWaitedFor() {
        try (WakeDescriptor wake = new WakeDescriptor();
                PollSet polls = new PollSet()) {
            for (int i = 0; i < 100; i++) {
                assertThat(polls.add(there, PollSet.POLLIN)).isEqualTo(i);
            }
            assertThat(polls.add(wake.descriptor(), PollSet.POLLIN)).isEqualTo(100);
            wake.wake();
            wake.wake();
            polls.await(LONG_MILLIS);
            assertThat(polls.ready(100)).isEqualTo(PollSet.POLLIN);
            assertThat(polls.ready(99)).isZero();
            wake.reset();
            wake.reset();
            polls.clear();
            polls.add(wake.descriptor(), PollSet.POLLIN);
            polls.add(there, 0);
            closeNow(here);
            polls.await(LONG_MILLIS);
            assertThat(polls.ready(0)).isZero();
            assertThat(polls.ready(1) & PollSet.POLLHUP).isEqualTo(PollSet.POLLHUP);
            wake.close();
            wake.wake(); // of no consequence
        }
    }
}
