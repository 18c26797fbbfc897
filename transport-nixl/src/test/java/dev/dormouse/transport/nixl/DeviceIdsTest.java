package dev.dormouse.transport.nixl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.TransportException;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/** Host memory gets a fresh device id once its keys are seen to change, and only then. */
final class DeviceIdsTest {
    private static final List<Long> RANGES = List.of(4_096L, 8_192L);
    private static final List<Long> OTHERS = List.of(16_384L, 4_096L);

    private final DeviceIds ids = new DeviceIds();
    private final Set<Integer> open = new TreeSet<>();
    private int registered;
    private boolean closes = true;

    @Test
    void memoryWithTheSameKeyEachTimeKeepsTheFirstId() {
        for (int i = 0; i < 5; i++) {
            Registered made = register(RANGES, () -> new byte[] {1});
            assertThat(made.id).isZero();
            made.close();
        }
        assertThat(registered).isEqualTo(5);
    }

    @Test
    void anotherKeyGetsAFreshIdAndSoDoesWhatComesLater() {
        register(RANGES, () -> new byte[] {1}).close();
        Registered second = register(RANGES, () -> new byte[] {2});
        assertThat(second.id).isEqualTo(1);
        assertThat(open).as("what was tried first is given up").containsExactly(1);
        second.close();
        assertThat(register(RANGES, () -> new byte[] {2}).id).isEqualTo(2);
        assertThat(register(OTHERS, () -> new byte[] {3}).id).isEqualTo(3);
        assertThat(registered).isEqualTo(5);
    }

    @Test
    void otherMemorySaysNothingOfKeys() {
        assertThat(register(RANGES, () -> new byte[] {1}).id).isZero();
        assertThat(register(OTHERS, () -> new byte[] {2}).id).isZero();
    }

    @Test
    void whatCannotBeGivenUpIsKept() {
        register(RANGES, () -> new byte[] {1}).close();
        closes = false;
        assertThat(register(RANGES, () -> new byte[] {2}).id).isZero();
        assertThat(open).containsExactly(0);
        closes = true;
        open.clear();
        assertThat(register(RANGES, () -> new byte[] {3}).id).isEqualTo(1);
    }

    @Test
    void withoutMetadataNothingStaysRegistered() {
        assertThatIllegalStateException()
                .isThrownBy(
                        () ->
                                register(
                                        RANGES,
                                        () -> {
                                            throw new IllegalStateException("no metadata");
                                        }));
        assertThat(open).isEmpty();
    }

    private Registered register(List<Long> ranges, Supplier<byte[]> metadata) {
        return ids.register(
                ranges,
                id -> {
                    registered++;
                    open.add(id);
                    return new Registered(id);
                },
                metadata);
    }

    /** Under an id. */
    private final class Registered implements Registration {
        private final int id;

        private Registered(int id) {
            this.id = id;
        }

        @Override
        public List<MemoryRange> ranges() {
            return List.of();
        }

        @Override
        public List<String> revoke() {
            return List.of();
        }

        @Override
        public void readmit() {}

        @Override
        public void close() {
            if (!closes) {
                throw new TransportException("deregister failed");
            }
            open.remove(id);
        }
    }
}
