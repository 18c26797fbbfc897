package dev.dormouse.simulation;

import dev.dormouse.router.routing.Role;
import dev.dormouse.testkit.ModelFabric;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * A cluster and everything around it. One random stream decides what happens next; all of it runs
 * on the caller's thread.
 */
final class World {
    private static final int MAX_DEPTH = 8;

    private final Setting setting;
    private final Tampering tampering;
    private final SplittableRandom random;
    private final Clock clock = new Clock();
    private final EventLog log = new EventLog(clock);
    private final Agenda agenda = new Agenda(clock);
    private final ModelFabric fabric;
    private final Network network;
    private final Router router;
    private final List<Place> places = new ArrayList<>();
    private final Tally tally = new Tally();
    private @Nullable String accusation;
    private Runnable disturbance = () -> {};
    private int depth;

    World(Setting setting, Tampering tampering, SplittableRandom random) {
        this.setting = setting;
        this.tampering = tampering;
        this.random = random;
        this.fabric = new ModelFabric(clock::nanoTime, setting.addressing());
        this.network = new Network(clock, random.split(), this::meanwhile);
        setting.engines().forEach(spec -> places.add(new Place(this, spec)));
        this.router = new Router(this);
    }

    Clock clock() {
        return clock;
    }

    EventLog log() {
        return log;
    }

    SplittableRandom random() {
        return random;
    }

    Agenda agenda() {
        return agenda;
    }

    ModelFabric fabric() {
        return fabric;
    }

    Network network() {
        return network;
    }

    Router router() {
        return router;
    }

    Tampering tampering() {
        return tampering;
    }

    Tally tally() {
        return tally;
    }

    /** All engines' places, prefill engines first. */
    List<Place> places() {
        return places;
    }

    List<Place> places(Role role) {
        return places.stream().filter(place -> place.spec().role() == role).toList();
    }

    /** What may go wrong also while somebody waits. */
    void disturbance(Runnable action) {
        disturbance = action;
    }

    /** Notes that a rule was broken; the scheduler stops at once. */
    void accuse(String what) {
        accusation = accusation == null ? what : accusation;
    }

    /** Whether things go wrong here. */
    boolean hasFaults() {
        return setting.faults();
    }

    /** A request has ended. */
    void ended(Request request, Request.End how, String why) {
        tally.ended(how);
        log.add(request.id() + " is over: " + how + ", " + why);
        if (how == Request.End.REFUSED && request.plan() == Request.Plan.MUST_SUCCEED) {
            accuse(request.id() + " must succeed, but " + why);
        }
    }

    /** One thing happens. */
    void event() {
        int pick = random.nextInt(100);
        if (pick < 45) {
            var _ = places.get(random.nextInt(places.size())).step();
        } else if (pick < 60) {
            var _ = agenda.runNext();
        } else if (pick < 72) {
            var _ = network.runNext();
        } else if (pick < 93) {
            clock.advance(Duration.ofNanos(random.nextInt(2_000_000)));
        } else {
            clock.advance(Duration.ofMillis(random.nextInt(60)));
        }
    }

    /** Everything that can happen now happens, in some order; true if anything did. */
    boolean round() {
        boolean busy = false;
        while (agenda.runNext()) {
            busy = true;
        }
        while (network.runNext()) {
            busy = true;
        }
        int first = random.nextInt(places.size());
        for (int i = 0; i < places.size(); i++) {
            busy |= places.get((first + i) % places.size()).step();
        }
        check();
        return busy;
    }

    /** Throws if a rule was broken. */
    void check() {
        if (accusation != null) {
            throw new Violation(accusation);
        }
        if (depth == 0) {
            for (Place place : places) {
                EngineProcess process = place.process();
                if (process != null) {
                    process.check();
                }
            }
        }
    }

    /** A worker waits: time passes, and something else happens. */
    void whileBlocked() {
        clock.advance(Duration.ofMillis(1 + random.nextInt(4)));
        nested();
    }

    private void meanwhile() {
        while (random.nextInt(3) == 0) {
            nested();
        }
    }

    private void nested() {
        if (depth < MAX_DEPTH) {
            depth++;
            try {
                if (random.nextInt(40) == 0) {
                    disturbance.run();
                } else {
                    event();
                }
            } finally {
                depth--;
            }
        }
    }
}
