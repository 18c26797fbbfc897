package dev.dormouse.transport.local;

import dev.dormouse.transport.TransportException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/** What the descriptors are that an owner gives, in their order. All of them are of one kind. */
sealed interface SharedMemory {
    /** How many descriptors. */
    int count();

    /** The descriptors from one to before another. */
    SharedMemory part(int from, int to);

    /**
     * These and further ones behind them.
     *
     * @throws TransportException if they are of another kind, or of another device
     */
    SharedMemory plus(SharedMemory more);

    /** Files in memory. */
    record HostFiles(int count) implements SharedMemory {
        @Override
        public SharedMemory part(int from, int to) {
            return new HostFiles(to - from);
        }

        @Override
        public SharedMemory plus(SharedMemory more) {
            if (more instanceof HostFiles files) {
                return new HostFiles(count + files.count);
            }
            throw new TransportException(
                    "an agent's memory is of one kind: of the host, or of one device");
        }
    }

    /**
     * Pieces of a device's physical memory. They are mapped one behind the other.
     *
     * @param device the driver's name for it
     * @param writable whether the owner lets peers write
     * @param lengthsBytes of each piece; their sum is at most {@link #MAX_BYTES}
     */
    record DevicePieces(UUID device, boolean writable, List<Long> lengthsBytes)
            implements SharedMemory {
        /** More than any device has, and less than an address space has. */
        static final long MAX_BYTES = 1L << 44;

        public DevicePieces {
            lengthsBytes = List.copyOf(lengthsBytes);
            long sum = 0;
            for (long length : lengthsBytes) {
                if (length < 1 || length > MAX_BYTES - sum) {
                    throw new IllegalArgumentException(
                            "device memory: a piece of %d bytes behind %d".formatted(length, sum));
                }
                sum += length;
            }
        }

        long lengthBytes() {
            return lengthsBytes.stream().mapToLong(Long::longValue).sum();
        }

        @Override
        public int count() {
            return lengthsBytes.size();
        }

        @Override
        public SharedMemory part(int from, int to) {
            return new DevicePieces(device, writable, lengthsBytes.subList(from, to));
        }

        @Override
        public SharedMemory plus(SharedMemory more) {
            if (more instanceof DevicePieces(UUID other, boolean alsoWritable, List<Long> lengths)
                    && other.equals(device)
                    && alsoWritable == writable) {
                List<Long> all = new ArrayList<>(lengthsBytes);
                all.addAll(lengths);
                try {
                    return new DevicePieces(device, writable, all);
                } catch (IllegalArgumentException e) {
                    throw new TransportException(String.valueOf(e.getMessage()), e);
                }
            }
            throw new TransportException(
                    "an agent's memory is of one kind: of the host, or of one device");
        }
    }

    /** All of them, one behind the other; no files if there are none. */
    static SharedMemory joined(List<SharedMemory> parts) {
        return parts.stream().reduce(SharedMemory::plus).orElse(new HostFiles(0));
    }
}
