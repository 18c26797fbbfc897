package dev.dormouse.simulation;

import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.engine.WakeTag;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;

/** Whoever puts engines to sleep and wakes them, in every way there is. */
final class Operator {
    private static final int MAX_PENDING = 3;

    private final World world;
    private final SplittableRandom random;

    Operator(World world, SplittableRandom random) {
        this.world = world;
        this.random = random;
    }

    /** Asks one engine for one transition, and mostly for the way back, some time later. */
    void act() {
        List<Place> places = world.places();
        Place place = places.get(random.nextInt(places.size()));
        EngineProcess process = place.process();
        if (process == null || place.pendingTransitions() >= MAX_PENDING) {
            return;
        }
        Engine engine = process.engine();
        switch (random.nextInt(12)) {
            case 0, 1, 2 -> {
                int level = random.nextInt(3);
                PauseMode mode = mode();
                place.expect("sleep level=" + level + " mode=" + mode, engine.sleep(level, mode));
                wakeLater(place);
            }
            case 3 -> {
                PauseMode mode = random.nextBoolean() ? PauseMode.WAIT : PauseMode.ABORT;
                place.expect("pause to release, mode=" + mode, engine.pause(mode, true));
                place.expect("release the KV cache", engine.releaseKvCacheMemory());
                wakeLater(place);
            }
            case 4 -> place.expect("release the KV cache", engine.releaseKvCacheMemory());
            case 5 -> {
                PauseMode mode = mode();
                boolean clear = random.nextBoolean();
                place.expect("pause mode=" + mode + " clear=" + clear, engine.pause(mode, clear));
                resumeLater(place);
            }
            case 6 -> place.expect("resume", engine.resume());
            case 7 -> place.expect("reset the prefix cache", engine.resetPrefixCache());
            default -> wake(place, process);
        }
    }

    /** Brings back what is away, so that all engines serve in the end; true if all do. */
    boolean wakeAll() {
        boolean all = true;
        for (Place place : world.places()) {
            EngineProcess process = place.process();
            if (process == null || process.state().phase() == Phase.FAILED) {
                place.stop(true);
                place.start();
                all = false;
            } else if (place.pendingTransitions() > 0) {
                all = false;
            } else if (process.state().phase() == Phase.ASLEEP) {
                place.expect("wake", process.engine().wake(null));
                all = false;
            } else if (process.state().phase() != Phase.AWAKE) {
                place.expect("resume", process.engine().resume());
                all = false;
            }
        }
        return all;
    }

    private void wake(Place place, EngineProcess process) {
        EnumSet<WakeTag> tags = EnumSet.noneOf(WakeTag.class);
        for (WakeTag tag : WakeTag.values()) {
            if (random.nextBoolean()) {
                tags.add(tag);
            }
        }
        if (tags.isEmpty()) {
            place.expect("wake", process.engine().wake(null));
        } else {
            place.expect("wake " + tags, process.engine().wake(Set.copyOf(tags)));
        }
    }

    private void wakeLater(Place place) {
        if (random.nextInt(4) > 0) {
            List<WakeTag> order =
                    random.nextBoolean()
                            ? List.of(WakeTag.WEIGHTS, WakeTag.KV_CACHE, WakeTag.SCHEDULING)
                            : List.of(WakeTag.KV_CACHE, WakeTag.WEIGHTS, WakeTag.SCHEDULING);
            boolean oneByOne = random.nextBoolean();
            world.agenda()
                    .after(
                            later(),
                            () -> {
                                EngineProcess process = place.process();
                                if (process != null && oneByOne) {
                                    order.forEach(
                                            tag ->
                                                    place.expect(
                                                            "wake " + tag,
                                                            process.engine().wake(Set.of(tag))));
                                } else if (process != null) {
                                    place.expect("wake", process.engine().wake(null));
                                }
                            });
        }
    }

    private void resumeLater(Place place) {
        world.agenda()
                .after(
                        later(),
                        () -> {
                            EngineProcess process = place.process();
                            if (process != null) {
                                place.expect("resume", process.engine().resume());
                            }
                        });
    }

    private PauseMode mode() {
        return List.of(PauseMode.values()).get(random.nextInt(3));
    }

    private Duration later() {
        return Duration.ofMillis(random.nextInt(random.nextInt(4) == 0 ? 20_000 : 200));
    }
}
