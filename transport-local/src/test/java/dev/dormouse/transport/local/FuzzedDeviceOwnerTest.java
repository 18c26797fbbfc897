package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.foreign.Libc;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.Seeded;
import dev.dormouse.transport.RemotePeer;
import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What seeds make up of the answers of an owner of device memory. */
class FuzzedDeviceOwnerTest extends DeviceReaderFixture {
    /** Whatever comes is refused, or can be used and given up. */
    private void assertHarmless(List<byte[]> frames, List<int[]> descriptors) {
        try {
            RemotePeer peer =
                    load(
                            raw -> {
                                for (int i = 0; i < frames.size(); i++) {
                                    raw.send(frames.get(i), descriptors.get(i));
                                }
                            });
            var _ = readRow(peer, ADDRESS);
            peer.close();
        } catch (TransportException e) {
            assertThat(e).message().isNotBlank();
        }
        awaitNothingLeft();
    }

    @Test
    void answersOfAnyShapeAreHarmless() {
        int[] files = {piece(granule), piece(2 * granule), file(), listener};
        count();
        Seeded.forAll(
                300,
                random -> {
                    List<byte[]> frames = new ArrayList<>();
                    List<int[]> descriptors = new ArrayList<>();
                    int parts = random.nextInt(4) == 0 ? 2 : 1;
                    for (int part = 0; part < parts; part++) {
                        int pieces = random.nextInt(4);
                        RawGrant grant = randomGrant(pieces, random);
                        if (part < parts - 1) {
                            grant.notLast();
                        }
                        frames.add(grant.encode());
                        int came = random.nextInt(8) == 0 ? random.nextInt(5) : pieces;
                        descriptors.add(
                                IntStream.range(0, came)
                                        .map(_ -> files[likely(0, 3, random)])
                                        .toArray());
                    }
                    assertHarmless(frames, descriptors);
                });
        Arrays.stream(files, 0, 3).forEach(Libc::close);
    }

    private RawGrant randomGrant(int pieces, SplittableRandom random) {
        long[] odd = {
            granule, 2 * granule, granule / 2, granule + 1, 1, 0, -1, 1L << 44, Long.MAX_VALUE
        };
        RawGrant grant =
                grant().kind(likely(1, 2, random))
                        .writable(random.nextInt(256))
                        .lengths(
                                IntStream.range(0, pieces)
                                        .mapToLong(_ -> odd[likely(0, odd.length - 1, random)])
                                        .toArray());
        if (random.nextInt(10) == 0) {
            grant.device(new UUID(random.nextLong(), random.nextLong()));
        }
        if (random.nextInt(10) == 0) {
            grant.toldCount(random.nextInt(0x10000));
        }
        if (random.nextInt(10) == 0) {
            grant.toldSegments(random.nextInt(0x10000));
        }
        for (int i = random.nextInt(4); i > 0; i--) {
            long[] addresses = {ADDRESS, ADDRESS + 1, 1, 0, -1, Long.MAX_VALUE};
            grant.segment(
                    addresses[likely(0, addresses.length - 1, random)],
                    odd[likely(0, odd.length - 1, random)],
                    likely(0, pieces, random),
                    odd[likely(5, odd.length - 1, random)]);
        }
        return grant;
    }

    /** Three times of four what is good, so that most of what is bad is so for one reason. */
    private static int likely(int good, int most, SplittableRandom random) {
        return random.nextInt(4) > 0 ? good : random.nextInt(most + 1);
    }

    @Test
    void bytesThatChangeOnTheirWayAreHarmless() {
        int[] files = {piece(granule), piece(granule)};
        byte[] good =
                grant().lengths(granule, granule).segment(ADDRESS, 2 * granule, 0, 0).encode();
        count();
        Seeded.forAll(
                300,
                random -> {
                    byte[] bytes =
                            Arrays.copyOf(
                                    good,
                                    good.length
                                            + (random.nextInt(4) > 0
                                                    ? 0
                                                    : random.nextInt(-40, 40)));
                    for (int i = random.nextInt(1, 4); i > 0; i--) {
                        bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(256);
                    }
                    assertHarmless(List.of(bytes), List.of(files));
                });
        Arrays.stream(files).forEach(Libc::close);
    }

    @Test
    void whatFollowsAnAnswerIsHarmless() {
        int[] files = {piece(granule)};
        byte[] good = grant().lengths(granule).segment(ADDRESS, granule, 0, 0).encode();
        count();
        Seeded.forAll(
                100,
                random -> {
                    byte[] surprise = new byte[random.nextInt(1, 200)];
                    random.nextBytes(surprise);
                    surprise[0] = (byte) random.nextInt(9);
                    int[] along = random.nextBoolean() ? files : new int[0];
                    try {
                        RemotePeer peer =
                                load(
                                        raw -> {
                                            raw.send(good, files);
                                            raw.send(surprise, along);
                                            raw.awaitReleased();
                                        });
                        Await.until("its end", () -> !peer.isConnected());
                        assertThat(readRow(peer, ADDRESS)).isFalse();
                        peer.close();
                    } catch (TransportException e) { // it came before the load
                        assertThat(e).message().isNotBlank();
                    }
                    awaitNothingLeft();
                });
        Arrays.stream(files).forEach(Libc::close);
    }
}
