package dev.dormouse.simulation;

import dev.dormouse.engine.EngineState;
import dev.dormouse.engine.EngineState.Phase;
import dev.dormouse.engine.TransitionRefusedException;
import dev.dormouse.engine.TransitionReport;
import dev.dormouse.engine.WakeTag;
import dev.dormouse.router.routing.Engine;
import java.net.URI;
import java.time.Duration;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** Where an engine runs, dies and starts again, with what its operator waits for. */
final class Place {
    private final World world;
    private final EngineSpec spec;
    private final Engine routed;
    private @Nullable EngineProcess process;
    private int starts;
    private int pendingTransitions;
    private long frozenUntilNanos;

    Place(World world, EngineSpec spec) {
        this.world = world;
        this.spec = spec;
        this.routed =
                new Engine(
                        spec.role(),
                        spec.address().port(),
                        URI.create("http://" + spec.address().host()));
    }

    EngineSpec spec() {
        return spec;
    }

    /** The process that runs, or null. */
    @Nullable EngineProcess process() {
        return process;
    }

    /** The engine as the router knows it. */
    Engine routed() {
        return routed;
    }

    int pendingTransitions() {
        return pendingTransitions;
    }

    /** The process's thread does not run for some time, as in a long computation. */
    void freeze(Duration duration) {
        frozenUntilNanos = world.clock().nanoTime() + duration.toNanos();
    }

    /** One round of the process's loop; false if there was nothing to do. */
    boolean step() {
        EngineProcess running = process;
        if (running == null
                || world.clock().nanoTime() < frozenUntilNanos
                || (pendingTransitions > 0 && running.isConversing())) {
            return false;
        }
        return running.step() > 0;
    }

    void start() {
        if (process == null) {
            process = new EngineProcess(world, spec, starts++, world.random().split());
            world.log().add(process + " serves at " + spec.address());
        }
    }

    /** Kills the process, or ends it in order; whoever waits for it loses its connection. */
    void stop(boolean kill) {
        EngineProcess ending = process;
        if (ending == null || ending.isBusy() || (!kill && ending.isConversing())) {
            return;
        }
        world.tally().add(ending);
        world.tally().died();
        world.log().add(ending + (kill ? " is killed" : " is closed"));
        if (kill) {
            ending.kill();
        } else {
            ending.close();
        }
        process = null;
        pendingTransitions = 0;
        world.router().lost(ending);
    }

    /** Asks what the router's health checks ask. */
    void checkHealth() {
        EngineProcess running = process;
        if (running == null) {
            routed.health(new Engine.Health(Engine.Readiness.DOWN, "unreachable"));
            return;
        }
        EngineState state = running.state();
        boolean ready = state.phase() == Phase.AWAKE && !state.paused();
        boolean alive = state.phase() != Phase.FAILED && state.phase() != Phase.CLOSED;
        routed.health(Engine.Health.ofAnswers(ready ? 200 : 503, alive ? 200 : 503));
    }

    /** Waits for a transition of the process that runs. */
    void expect(String name, CompletableFuture<TransitionReport> outcome) {
        EngineProcess asked = process;
        world.log().add(asked + " is asked to " + name);
        pendingTransitions++;
        var _ =
                outcome.whenComplete(
                        (report, refusal) -> {
                            if (process == asked) {
                                pendingTransitions--;
                            }
                            if (report != null && report.changed()) {
                                world.tally().changed();
                            }
                            if (refusal != null && mustNotFail() && !isConflict(refusal)) {
                                world.accuse(asked + " could not " + name + ": " + refusal);
                            }
                            world.log().add(asked + " " + name + ": " + tell(report, refusal));
                        });
    }

    /** Who is written to by an engine that stands still cannot sleep, without any fault. */
    private boolean mustNotFail() {
        return !world.hasFaults() && !spec.push();
    }

    /** Whether another call, or the engine's state, was in the way. */
    private static boolean isConflict(Throwable refusal) {
        return refusal instanceof TransitionRefusedException refused
                && refused.reason() == TransitionRefusedException.Reason.CONFLICT;
    }

    private static String tell(@Nullable TransitionReport report, @Nullable Throwable refusal) {
        return report == null
                ? "refused, " + refusal
                : "changed=%s phase=%s asleep=%s bytes=%d"
                        .formatted(
                                report.changed(),
                                report.state().phase(),
                                new TreeSet<WakeTag>(report.state().asleep()),
                                report.bytes());
    }

    @Override
    public String toString() {
        return spec.name();
    }
}
