package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.testkit.Await;
import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.TransportMetadata;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** What an owner may send at the wrong time. */
class UnexpectedFramesTest extends OwnerFixture {
    @Test
    void whatDoesNotBelongThereEndsThePeerAndItsMapping() {
        for (byte[] surprise :
                List.of(
                        new byte[] {77},
                        new Frame.Released().encode(),
                        new Frame.Message(true, new byte[9]).encode(),
                        new Frame.Offer(metadata.registrations()).encode(),
                        new byte[Frame.MAX_BYTES])) {
            Frame[] said = new Frame[1];
            CountDownLatch loaded = new CountDownLatch(1);
            RemotePeer peer =
                    load(
                            raw -> {
                                give(raw);
                                Await.until("the load", () -> loaded.getCount() == 0);
                                raw.send(surprise);
                                said[0] = Frame.decode(raw.receive().bytes());
                            });
            loaded.countDown();
            Await.until("its end", () -> !peer.isConnected());
            Await.until("the owner's end", () -> last.getCount() == 0);
            assertThat(said[0]).isEqualTo(new Frame.Released());
            assertThatExceptionOfType(TransportException.class)
                    .isThrownBy(
                            () ->
                                    reader.transport()
                                            .prepareRemote(
                                                    peer,
                                                    List.of(
                                                            new BlockRow(
                                                                    ADDRESS,
                                                                    4096,
                                                                    4096,
                                                                    1,
                                                                    MemoryKind.DRAM,
                                                                    0))));
            peer.close();
            Await.until("nothing is left", () -> ProcessCounts.now().equals(before));
        }
    }

    @Test
    void whatDoesNotBelongThereIsNoBetterBeforeTheLoad() {
        serve(
                raw -> {
                    give(raw);
                    raw.send(new Frame.Released());
                    raw.awaitReleased();
                });

        reader.transport().prepareLoad(TransportMetadata.ofSameHost(metadata.encode()));

        Await.until("the owner's end", () -> last.getCount() == 0);
        Await.until("nothing is left", () -> ProcessCounts.now().equals(before));
    }

    /** Loads once, and stands by until the owner has done what it is told to. */
    private void standBy(Consumer<RawPeer> andThen) {
        CountDownLatch loaded = new CountDownLatch(1);
        RemotePeer peer =
                load(
                        raw -> {
                            give(raw);
                            Await.until("the load", () -> loaded.getCount() == 0);
                            raw.send(new Frame.Revoke());
                            assertThat(Frame.decode(raw.receive().bytes()))
                                    .isEqualTo(new Frame.Released());
                            andThen.accept(raw);
                        });
        loaded.countDown();
        Await.until("its end", () -> !peer.isConnected());
        peer.close();
        Await.until("the owner's end", () -> last.getCount() == 0);
        Await.until("nothing is left", () -> ProcessCounts.now().equals(before));
    }

    @Test
    void whatIsOfferedAndNotLoadedIsTakenBackAndNotOfferedAgain() {
        List<Token> offered = List.of(Token.random(), Token.random());
        List<Frame> said = new ArrayList<>();
        standBy(
                raw -> {
                    raw.send(new Frame.Offer(offered));
                    said.add(Frame.decode(raw.receive().bytes()));
                    give(raw);
                    raw.send(new Frame.Revoke());
                    said.add(Frame.decode(raw.receive().bytes()));
                    raw.awaitEnd();
                });
        assertThat(said)
                .containsExactly(
                        new Frame.Hello(incarnation, reader.transport().agentName(), offered),
                        new Frame.Released());
    }

    @Test
    void whoStandsByTakesNothingButOffers() {
        standBy(
                raw -> {
                    raw.send(new Frame.Revoke()); // as when its word crosses another one
                    raw.send(new Frame.Released());
                    raw.awaitEnd();
                });
        standBy(
                raw -> {
                    give(raw);
                    raw.awaitEnd();
                });
        standBy(
                raw -> {
                    raw.send(new Frame.Offer(List.of()));
                    raw.receive();
                    with(file(0), file -> raw.send(grant(1, 0, BYTES), file)); // not sealed
                    raw.awaitEnd();
                });
    }
}
