package dev.dormouse.simulation;

import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.engine.PauseMode;
import dev.dormouse.router.routing.Role;
import dev.dormouse.testkit.ModelCounts;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * One world's life: disorder, then healing, then the proof that nothing was left behind and that
 * everything works.
 */
final class History {
    private static final int MAX_OPEN = 12;

    private final Setting setting;
    private final World world;
    private final SplittableRandom random;
    private final Calm calm;
    private final Operator operator;
    private final Faults faults;
    private final Prompts prompts;
    private final Conversations conversations;
    private int requests;

    History(Setting setting, World world, SplittableRandom random) {
        this.setting = setting;
        this.world = world;
        this.random = random;
        this.calm = new Calm(world);
        this.operator = new Operator(world, random.split());
        this.faults = new Faults(world, random.split());
        this.prompts = new Prompts(setting.kvHeads(), random.split());
        this.conversations = new Conversations(random.split());
    }

    /** Lives it. */
    void live() {
        world.router().onAnswer(this::answered);
        world.places().forEach(Place::start);
        if (setting.faults()) {
            world.router().onTheWay(faults::onTheWay);
            world.disturbance(faults::inject);
        }
        for (int i = 0; i < setting.events(); i++) {
            if (random.nextInt(7) == 0) {
                disturb();
            } else {
                world.event();
            }
            world.check();
        }
        world.log().add("healing");
        world.router().onAnswer(conversations::add);
        world.disturbance(() -> {});
        faults.heal();
        calm.settle("everybody is answered and awake", this::isQuiet);
        long lastArrivalNanos = world.clock().nanoTime() + Faults.LONGEST_DELAY.toNanos();
        calm.settle(
                "every late message has arrived",
                () -> world.clock().nanoTime() - lastArrivalNanos >= 0);
        requireIdle();
        sleepAndWakeAll();
        everyPairReads(true);
        everyPairReadsBack(true);
        for (Place prefill : world.places(Role.PREFILL)) {
            cycle(prefill);
        }
        everyPairReads(true);
        everyPairReadsBack(true);
        everyPairReads(false);
        everyPairReadsBack(false);
        requireIdle();
        world.places().forEach(this::count);
    }

    private void disturb() {
        int pick = random.nextInt(100);
        if (pick < 40) {
            arrive(random.nextInt(4) == 0 ? conversations.any() : null);
        } else if (pick < 55) {
            if (setting.sleeps()) {
                operator.act();
            }
        } else if (pick < 75) {
            if (setting.faults()) {
                disorder();
            }
        } else if (pick < 85) {
            world.places().forEach(Place::checkHealth);
        } else if (pick < 90) {
            List<Carrier> open = List.copyOf(world.router().open());
            if (!open.isEmpty()) {
                Carrier carrier = open.get(random.nextInt(open.size()));
                if (random.nextInt(3) == 0) {
                    carrier.timeOut();
                } else {
                    carrier.leave();
                }
            }
        } else if (pick < 93) {
            Place place = world.places().get(random.nextInt(world.places().size()));
            Duration duration =
                    Duration.ofMillis(random.nextInt(random.nextBoolean() ? 50 : 20_000));
            place.freeze(duration);
            world.log().add(place + " does not run for " + duration);
        } else if (pick < 97) {
            world.clock().advance(Duration.ofMillis(random.nextInt(1_000)));
        } else {
            world.clock().advance(Duration.ofMillis(random.nextInt(15_000)));
        }
    }

    private void disorder() {
        switch (random.nextInt(8)) {
            case 0 -> faults.changeRouter();
            case 1 -> {
                var _ = world.router().repeat(this::again, random.nextInt(1 << 20));
            }
            default -> faults.inject();
        }
    }

    /** Many a client goes on soon. */
    private void answered(Request request, @Nullable KvTransferParams params) {
        conversations.add(request, params);
        if (params != null && random.nextInt(4) > 0) {
            Duration pause = Duration.ofMillis(random.nextInt(300));
            world.agenda().after(pause, () -> arrive(conversations.any()));
        }
    }

    private void arrive(Conversations.@Nullable Turn turn) {
        if (world.router().open().size() < MAX_OPEN) {
            List<Integer> prompt = turn == null ? prompts.any() : conversations.prompt(turn, false);
            if (turn == null) {
                world.router().take(request(prompt, plan()));
            } else if (prompt.size() <= Prompts.MAX_LENGTH) {
                KvTransferParams params = world.router().onTheWay(turn.params());
                world.router().take(request(prompt, plan()).after(params));
            }
        }
    }

    private Request.Plan plan() {
        return switch (random.nextInt(12)) {
            case 0 -> Request.Plan.DETOUR;
            case 1, 2, 3, 4, 5 -> Request.Plan.STREAMED;
            default -> Request.Plan.WHOLE;
        };
    }

    private Request request(List<Integer> prompt, Request.Plan plan) {
        return new Request(
                "r" + requests++,
                prompt,
                prompts.answer(prompt, prompts.outputLength()),
                null,
                plan);
    }

    /** The same request once more, or another one with its parameters. */
    private Request again(Request old) {
        if (random.nextInt(4) == 0) {
            return request(prompts.ofLength(old.prompt().size()), plan());
        }
        return new Request(
                "again-" + requests++,
                old.prompt(),
                old.expected(),
                null,
                random.nextBoolean() ? Request.Plan.WHOLE : Request.Plan.STREAMED);
    }

    private boolean isQuiet() {
        return operator.wakeAll()
                && world.router().open().isEmpty()
                && world.agenda().isEmpty()
                && world.places().stream().allMatch(Calm::isIdle);
    }

    private void requireIdle() {
        calm.settle("all pools are full again", this::isQuiet);
    }

    /** Asleep nothing is left, at any rank. */
    private void sleepAndWakeAll() {
        for (Place place : world.places()) {
            EngineProcess process = place.process();
            if (process != null) {
                place.expect("sleep at last", process.engine().sleep(2, PauseMode.WAIT));
            }
        }
        calm.settle("all sleep", () -> world.places().stream().allMatch(this::isAway));
        calm.settle("all are awake", operator::wakeAll);
    }

    private boolean isAway(Place place) {
        EngineProcess process = place.process();
        if (process == null || place.pendingTransitions() > 0) {
            return false;
        }
        for (int rank = 0; rank < process.transports().size(); rank++) {
            if (world.tampering().checksMemory()
                    && (process.memory(rank).residentBytes() > 0
                            || !process.transports().get(rank).counts().equals(ModelCounts.NONE))) {
                throw new Violation(process + " sleeps with memory: " + Calm.describe(process));
            }
        }
        return true;
    }

    private void cycle(Place place) {
        EngineProcess process = place.process();
        if (process != null) {
            PauseMode mode = List.of(PauseMode.values()).get(random.nextInt(3));
            place.expect("sleep", process.engine().sleep(1 + random.nextInt(2), mode));
            calm.settle(place + " sleeps", () -> place.pendingTransitions() == 0);
            calm.settle(place + " is awake", operator::wakeAll);
        }
    }

    /**
     * Every decode engine reads two prompts from every prefill engine.
     *
     * @param fresh whether the prefill engine has registered anew since the last time
     */
    private void everyPairReads(boolean fresh) {
        for (Place prefill : world.places(Role.PREFILL)) {
            for (Place decode : world.places(Role.DECODE)) {
                EngineProcess reader = decode.process();
                if (reader == null) {
                    throw new Violation(decode + " is not there");
                }
                EngineStatistics before = reader.statistics();
                for (int i = 0; i < 2; i++) {
                    List<Integer> prompt = prompts.unheardOf();
                    world.router()
                            .take(request(prompt, Request.Plan.MUST_SUCCEED), prefill, decode);
                    calm.settle("the pair has answered", this::isQuiet);
                }
                EngineStatistics after = reader.statistics();
                requireReads(prefill, decode, before, after, fresh);
            }
        }
    }

    private void requireReads(
            Place prefill,
            Place decode,
            EngineStatistics before,
            EngineStatistics after,
            boolean fresh) {
        String pair = prefill + " and " + decode + ": ";
        if (after.computedPromptTokens() != before.computedPromptTokens()
                || after.remotePromptTokens() == before.remotePromptTokens()) {
            throw new Violation(pair + "prompts were computed twice: " + before + " " + after);
        }
        if (!decode.spec().push()) {
            requireHandshakes(decode, prefill, before, after, fresh);
        }
    }

    /** One per rank of a reader if anything is fresh; more only if it unloads whom it knows. */
    private static void requireHandshakes(
            Place reader,
            Place holder,
            EngineStatistics before,
            EngineStatistics after,
            boolean fresh) {
        long handshakes = after.transfers().handshakes() - before.transfers().handshakes();
        int ranks = reader.spec().ranks();
        long expected = fresh ? ranks : 0;
        if (handshakes != expected && reader.spec().timeToLive().isZero()) {
            throw new Violation(
                    "%s from %s: %d handshakes by %d ranks, instead of %d"
                            .formatted(reader, holder, handshakes, ranks, expected));
        }
    }

    /**
     * Every prefill engine reads back what every decode engine holds for a next turn.
     *
     * @param fresh whether one of them has registered anew since the last time
     */
    private void everyPairReadsBack(boolean fresh) {
        for (Place prefill : world.places(Role.PREFILL)) {
            for (Place decode : world.places(Role.DECODE)) {
                if (prefill.spec().readBack() != null
                        && prefill.spec().engine().blockTokens()
                                == decode.spec().engine().blockTokens()) {
                    readBack(prefill, decode, fresh);
                }
            }
        }
    }

    private void readBack(Place prefill, Place decode, boolean fresh) {
        EngineProcess reader = prefill.process();
        if (reader == null) {
            throw new Violation(prefill + " is not there");
        }
        Request first = request(prompts.unheardOf(), Request.Plan.MUST_SUCCEED);
        world.router().take(first, prefill, decode);
        calm.settle(
                "the first turn is answered",
                () -> world.router().open().isEmpty() && Calm.isIdle(prefill));
        prefill.expect("forget what it has computed", reader.engine().resetPrefixCache());
        calm.settle("it has forgotten", () -> prefill.pendingTransitions() == 0);
        Conversations.Turn turn = conversations.last();
        if (turn == null) {
            throw new Violation(decode + " holds nothing for a next turn");
        }
        EngineStatistics before = reader.statistics();
        List<Integer> prompt = conversations.prompt(turn, true);
        Request next = request(prompt, Request.Plan.MUST_SUCCEED).after(turn.params());
        world.router().take(next, prefill, decode);
        calm.settle("the next turn is answered", this::isQuiet);
        EngineStatistics after = reader.statistics();
        if (after.remotePromptTokens() == before.remotePromptTokens()) {
            throw new Violation(
                    "%s read nothing back from %s: %s %s"
                            .formatted(prefill, decode, before, after));
        }
        requireHandshakes(prefill, decode, before, after, fresh);
    }

    private void count(Place place) {
        EngineProcess process = place.process();
        if (process != null) {
            world.tally().add(process);
        }
    }
}
