package dev.dormouse.engine;

import java.util.Map;
import java.util.Set;

/**
 * What a transition did.
 *
 * @param changed false if there was nothing to do
 * @param state the state that it led to
 * @param level the sleep level that was asked for, or -1
 * @param tags the tags that fell asleep or woke
 * @param bytes bytes given back, or taken
 * @param phaseSeconds time per phase, in order
 */
public record TransitionReport(
        boolean changed,
        EngineState state,
        int level,
        Set<WakeTag> tags,
        long bytes,
        Map<String, Double> phaseSeconds) {}
