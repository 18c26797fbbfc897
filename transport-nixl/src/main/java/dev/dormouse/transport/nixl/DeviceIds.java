package dev.dormouse.transport.nixl;

import dev.dormouse.transport.Registration;
import dev.dormouse.transport.TransportException;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntFunction;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Which device id host memory is registered under. NIXL's UCX backend makes nothing of it there,
 * but NIXL tells sections apart by it: a peer that is loaded takes a changed key under a fresh id
 * and refuses one under the old id. Under a fresh id it keeps its connection, and so both sides
 * their queue pair; what stays of the old keys are a few KiB at the reader.
 *
 * <p>Where the same memory has the same key each time (cma, tcp), the id stays 0, and nothing is
 * left at all. Which of the two it is shows when memory is registered for the second time.
 */
final class DeviceIds {
    private int last;
    private boolean fresh;
    private @Nullable Told previous;

    /** What peers were told of ranges. */
    @SuppressWarnings("ArrayRecordComponent") // never leaves this class
    private record Told(List<Long> ranges, byte[] metadata) {}

    /**
     * Registers ranges under the right id.
     *
     * @param ranges their addresses and lengths
     * @param register registers them under the given id
     * @param metadata what peers are told afterwards
     */
    <R extends Registration> R register(
            List<Long> ranges, IntFunction<R> register, Supplier<byte[]> metadata) {
        if (fresh) {
            return register.apply(++last);
        }
        R registration = register.apply(last);
        if (hasKeysOfBefore(ranges, metadata, registration)) {
            return registration;
        }
        try {
            registration.close();
        } catch (TransportException e) {
            return registration; // as good as ever, but readers will have to connect anew
        }
        fresh = true;
        previous = null;
        return register.apply(++last);
    }

    /** True, too, if nothing is known of before. */
    private boolean hasKeysOfBefore(
            List<Long> ranges, Supplier<byte[]> metadata, Registration registration) {
        try {
            Told before = previous;
            Told now = new Told(List.copyOf(ranges), metadata.get());
            previous = now;
            return before == null
                    || !before.ranges.equals(now.ranges)
                    || Arrays.equals(before.metadata, now.metadata);
        } catch (RuntimeException e) {
            try {
                registration.close();
            } catch (RuntimeException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
    }
}
