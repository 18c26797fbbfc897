package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GatherPlacesTest {
    private static final int CAPACITY = 1000;
    private static final long BASE = 0x7000_0000_0000L;

    private final long[] sources = new long[CAPACITY];
    private final long[] targets = new long[CAPACITY];
    private final GatherPlaces places = new GatherPlaces(sources, targets);

    @AfterEach
    void closingTwiceIsFine() {
        places.close();
        places.close();
    }

    private void set(long[] itsSources, long[] itsTargets) {
        System.arraycopy(itsSources, 0, sources, 0, itsSources.length);
        System.arraycopy(itsTargets, 0, targets, 0, itsTargets.length);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 16, 48, 4096, 16384, 1L << 32})
    void launchesHaveAllBlocksInOrder(long stepBytes) {
        Random random = new Random(stepBytes);
        for (int round = 0; round < 200; round++) {
            int blocks = 1 + random.nextInt(CAPACITY);
            long room = 1L << (3 + random.nextInt(12 + Long.numberOfLeadingZeros(stepBytes) / 2));
            Arrays.setAll(sources, _ -> BASE + stepBytes * random.nextLong(-room, room));
            Arrays.setAll(targets, _ -> BASE + stepBytes * random.nextLong(-room, room));
            int done = 0;
            while (done < blocks) {
                places.measure(done, blocks - done);
                int end = done + places.count();
                assertThat(end).as("seed=%d round=%d", stepBytes, round).isGreaterThan(done);
                int[] ints = places.struct(places.count()).toArray(JAVA_INT);
                assertThat(addresses(ints, 0, places.source()))
                        .as("sources, seed=%d round=%d from=%d", stepBytes, round, done)
                        .isEqualTo(Arrays.copyOfRange(sources, done, end));
                assertThat(addresses(ints, places.count(), places.target()))
                        .as("targets, seed=%d round=%d from=%d", stepBytes, round, done)
                        .isEqualTo(Arrays.copyOfRange(targets, done, end));
                done = end;
            }
        }
    }

    /** As the kernel computes them. */
    private long[] addresses(int[] distances, int from, long first) {
        return Arrays.stream(distances, from, from + places.count())
                .mapToLong(distance -> first + ((long) distance << places.shift()))
                .toArray();
    }

    @Test
    void targetsStandBehindAllSourcesOfTheKernelsList() {
        set(new long[] {16, 48}, new long[] {BASE, BASE + 96});
        places.measure(0, 2);
        int[] ints = places.struct(10).toArray(JAVA_INT);

        assertThat(ints).hasSize(20);
        assertThat(places.shift()).isEqualTo(5);
        assertThat(Arrays.copyOfRange(ints, 0, 2)).containsExactly(0, 1);
        assertThat(Arrays.copyOfRange(ints, 10, 12)).containsExactly(0, 3);
    }

    @Test
    void oneLaunchHasBlocksAllOverALargeCache() {
        Arrays.setAll(sources, i -> BASE + 16384 * (i * 7919L % CAPACITY) * 10_000); // 164 GB
        set(sources, sources);
        places.measure(0, CAPACITY);
        assertThat(places.count()).isEqualTo(CAPACITY);
    }

    @Test
    void blocksFartherApartThanAnIntSaysTakeSeveralLaunches() {
        long far = 1L << 31;
        assertThat(countWithSecond(BASE + far - 1)).isEqualTo(3);
        assertThat(countWithSecond(BASE - far)).isEqualTo(1);
        assertThat(countWithSecond(BASE - far + 1)).isEqualTo(3);
        assertThat(countWithSecond(BASE + far)).isEqualTo(1);
    }

    /** Of three blocks, of which the first and the last one's addresses are multiples of one. */
    private int countWithSecond(long address) {
        long[] far = {BASE, address, BASE};
        long[] near = {0, 1, 2};
        set(far, near);
        places.measure(0, 3);
        int withSources = places.count();
        set(near, far);
        places.measure(0, 3);
        assertThat(places.count()).isEqualTo(withSources);
        return withSources;
    }

    @Test
    void theAddressesOfALaunchSayHowTheyAreAligned() {
        assertThat(alignment(0x100, 0x200, 0x110)).isEqualTo(16);
        assertThat(alignment(0x100, 0x204, 0x110)).isEqualTo(4);
        assertThat(alignment(0x104, 0x104, 0x114)).isEqualTo(4);
        assertThat(alignment(0x100, 0x102, 0x110)).isEqualTo(1);
        assertThat(alignment(0x101, 0x101, 0x101)).isEqualTo(1);
    }

    private int alignment(long... addresses) {
        set(addresses, new long[addresses.length]);
        places.measure(0, addresses.length);
        return GatherKernel.alignmentBytes(places.addressBits());
    }

    @Test
    void aBlockAloneIsItsOwnFirst() {
        set(new long[] {-1, BASE}, new long[] {-1, 5});
        places.measure(1, 1);
        assertThat(places.count()).isEqualTo(1);
        assertThat(places.source()).isEqualTo(BASE);
        assertThat(places.target()).isEqualTo(5);
    }

    @Test
    void aLaunchHasNoMorePiecesThanTheKernelCounts() {
        assertThat(GatherKernel.blocksPerLaunch(1)).isEqualTo(GatherList.CAPACITY);
        assertThat(GatherKernel.blocksPerLaunch(64L << 20)).isEqualTo(GatherList.CAPACITY);
        assertThat(GatherKernel.blocksPerLaunch(1L << 30)).isEqualTo(255);
        assertThat(GatherKernel.blocksPerLaunch(200L << 30)).isEqualTo(1);
        assertThatThrownBy(() -> GatherKernel.blocksPerLaunch(1L << 42))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("blocks of 4398046511104 bytes");
    }
}
