package dev.dormouse.memory;

import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The machine, or the control group, has no room for a wake. What was asleep still is. */
public final class NotEnoughMemoryException extends MemoryException {
    private static final long serialVersionUID = 1L;

    private final long neededBytes;
    private final long availableBytes;

    NotEnoughMemoryException(
            Set<MemoryTag> tags,
            long neededBytes,
            long availableBytes,
            @Nullable RuntimeException cause) {
        super(
                "wake %s refused: needs %d bytes, %d are available; free memory or reserve less, then wake again"
                        .formatted(
                                new TreeSet<>(tags)
                                        .stream()
                                                .map(MemoryTag::label)
                                                .collect(Collectors.joining(" and ")),
                                neededBytes,
                                availableBytes));
        if (cause != null) {
            initCause(cause);
        }
        this.neededBytes = neededBytes;
        this.availableBytes = availableBytes;
    }

    /** What the wake takes. */
    public long neededBytes() {
        return neededBytes;
    }

    /** What the process could get when the wake was refused. */
    public long availableBytes() {
        return availableBytes;
    }
}
