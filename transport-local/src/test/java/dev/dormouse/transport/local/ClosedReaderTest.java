package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.UnixSocket;
import dev.dormouse.testkit.Await;
import dev.dormouse.transport.TransportMetadata;
import java.util.List;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

/** What handshakes still prepare while their agent ends. */
class ClosedReaderTest {
    private final LocalMetadata owner =
            new LocalMetadata(
                    HostIdentity.ofThisProcess(),
                    Token.random(),
                    "dormouse-test-" + Token.random(),
                    "owner",
                    List.of(Token.random()));

    @Test
    void whatIsPreparedWhileTheAgentIsClosedEndsQuietlyAndLeavesNothing() throws Exception {
        ProcessCounts before = ProcessCounts.now();
        int listener = UnixSocket.listen(owner.socketName(), 0);
        int first = UnixSocket.connect(owner.socketName()).orElseThrow();
        assertThat(UnixSocket.connect(owner.socketName())).as("a second one").isEmpty();
        MemfdNode reader = new MemfdNode();
        Throwable[] thrown = new Throwable[1];
        Thread handshake =
                Thread.ofPlatform()
                        .name("dormouse-test-handshake")
                        .uncaughtExceptionHandler((_, e) -> thrown[0] = e)
                        .start(
                                () ->
                                        reader.transport()
                                                .prepareLoad(
                                                        TransportMetadata.ofSameHost(
                                                                owner.encode())));
        Await.until(
                "it waits to connect", () -> handshake.getState() == Thread.State.TIMED_WAITING);

        reader.close();
        OptionalInt accepted = UnixSocket.accept(listener); // there is room now
        handshake.join();

        assertThat(thrown[0]).isNull();
        accepted.ifPresent(Libc::close);
        Libc.close(first);
        Libc.close(listener);
        assertThat(ProcessCounts.now()).isEqualTo(before);
    }
}
