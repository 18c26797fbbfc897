package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.SocketMessage.Received;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.CudaDrivers;
import dev.dormouse.testkit.StandInDriver;
import dev.dormouse.transport.TransportException;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/** What a reader cannot give up it does not call released: its process counts as a holder then. */
class LeftBehindTest extends DeviceReaderFixture {
    private final Received[] said = new Received[1];

    private RawGrant granule() {
        return grant().lengths(granule).segment(ADDRESS, granule, 0, 0);
    }

    @Test
    void anImportThatIsNotGivenBackIsNotCalledReleased() {
        StandInDriver driver = CudaDrivers.standIn();
        int piece = piece(granule);
        driver.fail("cuMemRelease", 0, StandInDriver.OUT_OF_MEMORY);
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(
                        () ->
                                load(
                                        raw -> {
                                            raw.send(granule().encode(), piece);
                                            said[0] = raw.next();
                                        }))
                .withMessageContaining("is kept until this process ends");
        Await.until("the end", () -> said[0] != null);
        assertThat(said[0]).isInstanceOf(Received.End.class);
        Libc.close(piece);
    }

    @Test
    void whatIsNotUnmappedForWhateverReasonIsNotCalledReleased() {
        int piece = piece(granule);
        count();
        CountDownLatch used = new CountDownLatch(1);
        LocalPeer peer =
                (LocalPeer)
                        load(
                                raw -> {
                                    raw.send(granule().encode(), piece);
                                    Await.until("a copy", () -> used.getCount() == 0);
                                    raw.send(new Frame.Revoke());
                                    said[0] = raw.next();
                                });
        DeviceMapping mapping = (DeviceMapping) peer.mapping();
        DeviceCopier another = copier();
        int[] first = {0};
        DeviceCopy.start(
                false,
                new BlockPairs(
                        table(ownAddress), first, table(mapping.locate(ADDRESS, ROW_BYTES)), first),
                another,
                mapping);
        another.close(); // nobody can tell whether the copy has ended any more
        used.countDown();
        Await.until("the end", () -> said[0] != null);
        assertThat(said[0]).isInstanceOf(Received.End.class);
        peer.close();
        mapping.release();
        awaitNothingLeft();
        Libc.close(piece);
    }

    private static BlockTable table(long address) {
        return new BlockTable(List.of(row(ADDRESS)), new long[] {address});
    }
}
