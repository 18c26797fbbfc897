package dev.dormouse.cuda;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GatherPlacesTest {
    private static final int CAPACITY = 1000;
    private static final long BASE = 0x7000_0000_0000L;

    private final GatherPlaces places = new GatherPlaces(CAPACITY);

    @AfterEach
    void closingTwiceIsFine() {
        places.close();
        places.close();
    }

    /** Source and target of each, as the kernel computes them. */
    static long[] addresses(GatherPlaces places) {
        int[] distances = places.segment(places.count()).toArray(JAVA_INT);
        long[] addresses = new long[distances.length];
        for (int i = 0; i < distances.length; i++) {
            long first = i % 2 == 0 ? places.source() : places.target();
            addresses[i] = first + ((long) distances[i] << places.shift());
        }
        return addresses;
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 16, 48, 4096, 16384, 1L << 32})
    void launchesHaveAllBlocksInOrder(long stepBytes) {
        Random random = new Random(stepBytes);
        for (int round = 0; round < 200; round++) {
            int blocks = 1 + random.nextInt(CAPACITY);
            long room = 1L << (3 + random.nextInt(12 + Long.numberOfLeadingZeros(stepBytes) / 2));
            long[] addresses = new long[2 * blocks];
            Arrays.setAll(addresses, i -> BASE + stepBytes * random.nextLong(-room, room));
            int done = 0;
            while (done < blocks) {
                places.set(addresses, done, blocks);
                assertThat(places.count()).as("seed=%d round=%d", stepBytes, round).isPositive();
                assertThat(addresses(places))
                        .as("seed=%d round=%d from=%d", stepBytes, round, done)
                        .isEqualTo(
                                Arrays.copyOfRange(
                                        addresses, 2 * done, 2 * (done + places.count())));
                done += places.count();
            }
        }
    }

    @Test
    void oneLaunchHasBlocksAllOverALargeCache() {
        long[] addresses = new long[2 * CAPACITY];
        long step = 16384;
        for (int i = 0; i < CAPACITY; i++) {
            addresses[2 * i] = BASE + step * (i * 7919L % CAPACITY) * 10_000; // 164 GB
            addresses[2 * i + 1] = step * i;
        }
        places.set(addresses, 0, CAPACITY);
        assertThat(places.count()).isEqualTo(CAPACITY);
    }

    @Test
    void blocksFartherApartThanAnIntSaysTakeSeveral() {
        long far = 1L << 31;
        places.set(new long[] {BASE, 0, BASE + far - 1, 1, BASE, 2}, 0, 3);
        assertThat(places.count()).isEqualTo(3);
        places.set(new long[] {BASE, 0, BASE - far, 1, BASE, 2}, 0, 3);
        assertThat(places.count()).isEqualTo(3);
        places.set(new long[] {BASE, 0, BASE + far, 1, BASE, 2}, 0, 3);
        assertThat(places.count()).isEqualTo(1);
        places.set(new long[] {BASE, 0, BASE - far - 1, 1, BASE, 2}, 0, 3);
        assertThat(places.count()).isEqualTo(1);
    }

    @Test
    void aBlockAloneIsItsOwnFirst() {
        places.set(new long[] {-1, -1, BASE, 5}, 1, 2);
        assertThat(places.count()).isEqualTo(1);
        assertThat(places.source()).isEqualTo(BASE);
        assertThat(places.target()).isEqualTo(5);
        assertThat(addresses(places)).containsExactly(BASE, 5);
    }
}
