package dev.dormouse.engine.core;

import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.WakeTag;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** A change of state that was asked for. */
sealed interface Transition {
    /** See {@link dev.dormouse.engine.Engine#sleep}. */
    record Sleep(int level, PauseMode mode) implements Transition {}

    /** See {@link dev.dormouse.engine.Engine#releaseKvCacheMemory}. */
    record ReleaseKvCache() implements Transition {}

    /** See {@link dev.dormouse.engine.Engine#wake}. */
    record Wake(@Nullable Set<WakeTag> tags) implements Transition {}

    /** See {@link dev.dormouse.engine.Engine#pause}. */
    record Pause(PauseMode mode, boolean clearCache) implements Transition {}

    /** See {@link dev.dormouse.engine.Engine#resume}. */
    record Resume() implements Transition {}

    /** See {@link dev.dormouse.engine.Engine#resetPrefixCache}. */
    record ResetPrefixCache() implements Transition {}

    /** See {@link dev.dormouse.engine.Engine#windDown}. */
    record WindDown() implements Transition {}
}
