package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.UnixSocket;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.TransportException;
import java.util.Arrays;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What an owner may answer to a reader whose memory is a device's. */
class HostileDeviceOwnerTest extends DeviceReaderFixture {
    private void assertRefused(String why, Consumer<RawPeer> answer) {
        assertThatExceptionOfType(TransportException.class)
                .isThrownBy(() -> load(answer))
                .withMessageContaining(why);
        awaitNothingLeft();
    }

    /** One part, with descriptors that are closed behind it. */
    private void assertRefused(String why, RawGrant grant, int... descriptors) {
        try {
            assertRefused(why, raw -> raw.send(grant.encode(), descriptors));
        } finally {
            Arrays.stream(descriptors).forEach(Libc::close);
            count(); // without the test's own
        }
    }

    /** Opened before the counts that the refusal is judged by. */
    private int[] opened(int... descriptors) {
        count();
        return descriptors;
    }

    @Test
    void descriptorsOfAnotherKindAreNotMapped() {
        RawGrant one = grant().lengths(granule).segment(ADDRESS, granule, 0, 0);
        assertRefused("map a peer's device memory failed", one, opened(file()));
        assertRefused(
                "map a peer's device memory failed",
                one,
                opened(UnixSocket.listen("dormouse-test-" + Token.random(), 1)));
        assertRefused(
                "map a peer's device memory failed",
                grant().lengths(granule, granule).segment(ADDRESS, 2 * granule, 0, 0),
                opened(piece(granule), file()));
        assertRefused(
                "map a peer's memory failed",
                grant().kind(RawGrant.FILES).toldCount(1).segment(ADDRESS, granule, 0, 0),
                opened(piece(granule)));
        assertRefused("memory of kind 2", grant().kind(2).toldCount(1), opened(piece(granule)));
    }

    @Test
    void asManyDescriptorsMustComeAsPiecesAreTold() {
        RawGrant two = grant().lengths(granule, granule).segment(ADDRESS, granule, 0, 0);
        assertRefused("0 files came, and 2 were told", two);
        assertRefused("1 files came, and 2 were told", two, opened(piece(granule)));
        assertRefused(
                "3 files came, and 2 were told",
                two,
                opened(piece(granule), piece(granule), piece(granule)));
        assertRefused("a count is 65535", grant().toldCount(0xffff), opened(piece(granule)));
        assertRefused(
                "it ends after",
                grant().lengths(granule).toldCount(2),
                opened(piece(granule), piece(granule)));
        assertRefused(
                "a count is 65535",
                grant().lengths(granule).toldSegments(0xffff),
                opened(piece(granule)));
        assertRefused("map a peer's device memory failed", grant());
        assertRefused("in file 0 of 0", grant().segment(ADDRESS, granule, 0, 0));
    }

    @Test
    void piecesHaveWholeGranulesAndWhatTheyAreSaidToHave() {
        for (long length : new long[] {0, -1, Long.MIN_VALUE, Long.MAX_VALUE, (1L << 44) + 1}) {
            assertRefused("a piece of", grant().lengths(length), opened(piece(granule)));
        }
        for (long length : new long[] {1, granule - 1, granule + 1, granule / 2}) {
            assertRefused("multiple", grant().lengths(length), opened(piece(granule)));
        }
        assertRefused( // whole granules in all, and none by itself
                "multiple",
                grant().lengths(granule / 2, granule / 2).segment(ADDRESS, granule, 0, 0),
                opened(piece(granule), piece(granule)));
        assertRefused(
                "a piece of",
                grant().lengths(Long.MAX_VALUE, Long.MAX_VALUE),
                opened(piece(granule), piece(granule)));
        assertRefused(
                "map a peer's device memory failed",
                grant().lengths(2 * granule).segment(ADDRESS, granule, 0, 0),
                opened(piece(granule)));
    }

    @Test
    void memoryOfADeviceThatIsNotHereIsNotMapped() {
        assertRefused(
                "is not visible to this process",
                grant().device(new UUID(1, 2)).lengths(granule).segment(ADDRESS, granule, 0, 0),
                opened(piece(granule)));
        int[] two = opened(piece(granule), piece(granule));
        assertRefused(
                "of one kind",
                raw -> {
                    raw.send(grant().lengths(granule).notLast().encode(), two[0]);
                    raw.send(grant().device(new UUID(1, 2)).lengths(granule).encode(), two[1]);
                });
        assertRefused(
                "of one kind",
                raw -> {
                    raw.send(grant().lengths(granule).notLast().encode(), two[0]);
                    raw.send(grant().kind(RawGrant.FILES).toldCount(1).encode(), two[1]);
                });
        Arrays.stream(two).forEach(Libc::close);
        count();
    }

    @Test
    void rangesLieWithinThePieces() {
        long[][] ranges = {
            {ADDRESS, 0, 0, 0},
            {ADDRESS, -1, 0, 0},
            {0, granule, 0, 0},
            {-ADDRESS, granule, 0, 0},
            {Long.MAX_VALUE - 1, granule, 0, 0},
            {ADDRESS, granule, 0, -1},
            {ADDRESS, granule, 0, Long.MAX_VALUE},
            {ADDRESS, granule + 1, 0, 0},
            {ADDRESS, granule, 0, 1},
            {ADDRESS, Long.MAX_VALUE - ADDRESS, 0, 0},
            {ADDRESS, granule, 1, 0},
            {ADDRESS, granule, 0xffff, 0}
        };
        for (long[] range : ranges) {
            assertRefused(
                    "",
                    grant().lengths(granule).segment(range[0], range[1], (int) range[2], range[3]),
                    opened(piece(granule)));
        }
        assertRefused(
                "is said to end",
                grant().lengths(granule, granule).segment(ADDRESS, granule + 1, 1, 0),
                opened(piece(granule), piece(granule)));
    }

    @Test
    void rangesThatOverlapAndPiecesThatRepeatHarmNobodyElse() {
        int[] one = opened(piece(granule));
        int repeats = Frame.MAX_PART_DESCRIPTORS;
        long[] lengths = new long[repeats];
        Arrays.fill(lengths, granule);
        int[] same = IntStream.range(0, repeats).map(_ -> one[0]).toArray();
        RemotePeer peer =
                load(
                        raw -> {
                            raw.send(
                                    grant().lengths(lengths)
                                            .segment(ADDRESS, granule, 0, 0)
                                            .segment(ADDRESS + 1, granule - 1, 1, 0)
                                            .segment(ADDRESS, 2 * granule, repeats - 2, 0)
                                            .encode(),
                                    same);
                            raw.awaitReleased();
                        });
        assertThat(readRow(peer, ADDRESS)).isTrue();
        assertThat(readRow(peer, ADDRESS + 2 * granule - ROW_BYTES)).isTrue();
        assertThat(readRow(peer, ADDRESS + 2 * granule - ROW_BYTES + 1)).isFalse();
        assertThat(readRow(peer, ADDRESS - 1)).isFalse();
        peer.close();
        awaitNothingLeft();
        Libc.close(one[0]);
    }
}
