package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Addressing;
import dev.dormouse.testkit.ModelCounts;
import dev.dormouse.testkit.ModelFault;
import dev.dormouse.testkit.Seeded;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Two holders and two readers that sleep, wake, die and read in random order, on model time: every
 * byte that is read is the one that its holder handed over, or the request is reported as failed.
 * Holders give blocks to the next prompt as soon as nobody holds them.
 */
final class EpochPropertyTest {
    private static final int OPERATIONS = 150;

    /** A hand-over on its way through a router. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record InTransit(
            int holder, KvTransferParams params, long content, int[] blocks, boolean used) {}

    /** A read that was ordered. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Expected(int holder, String heldAs, long content, int[] blocks) {}

    @ParameterizedTest
    @CsvSource({"PAGES,false", "VIRTUAL,false", "PAGES,true", "VIRTUAL,true"})
    void everyByteThatComesIsTheOneHandedOverOrTheRequestFails(
            Addressing addressing, boolean pushed) {
        Seeded.forAll(40, random -> new Run(random, addressing, pushed, true).play());
    }

    @ParameterizedTest
    @CsvSource({"PAGES,false", "VIRTUAL,false", "PAGES,true", "VIRTUAL,true"})
    void withoutFaultsEachPairNeedsExactlyOneHandshakePerWakeOfEither(
            Addressing addressing, boolean pushed) {
        Seeded.forAll(20, random -> new Run(random, addressing, pushed, false).play());
    }

    /** One random history. */
    private static final class Run {
        private final SplittableRandom random;
        private final boolean pushed;
        private final boolean faults;
        private final Addressing addressing;
        private final ModelWorld world;
        private final List<ModelEngine> holders = new ArrayList<>();
        private final List<ModelEngine> readers = new ArrayList<>();
        private final Map<ModelEngine, Boolean> asleep = new HashMap<>();
        private final Map<ModelEngine, Set<Integer>> taken = new HashMap<>();
        private final Map<ModelEngine, Map<String, int[]>> held = new HashMap<>();
        private final List<InTransit> inTransit = new ArrayList<>();

        /** Hand-overs that a reader has used, and that it or the other one shall use once more. */
        private final List<List<InTransit>> repeats = List.of(new ArrayList<>(), new ArrayList<>());

        private final List<Map<String, Expected>> expected =
                List.of(new HashMap<>(), new HashMap<>());
        private final List<Set<String>> checked = List.of(new HashSet<>(), new HashSet<>());

        /**
         * Which registrations of a holder each reader has read through, since its own last wake.
         */
        private final List<Set<String>> pairings = List.of(new HashSet<>(), new HashSet<>());

        private final int[] wakes = new int[2];
        private long next = 1;
        private boolean healed;

        Run(SplittableRandom random, Addressing addressing, boolean pushed, boolean faults) {
            this.random = random;
            this.pushed = pushed;
            this.addressing = addressing;
            this.faults = faults;
            this.world = new ModelWorld(addressing);
            for (int i = 0; i < 2; i++) {
                holders.add(awake(world.start(config("P" + i), clock())));
                ModelEngine reader = awake(world.start(config("D" + i), clock()));
                int index = i;
                reader.onUnmap(() -> check(index));
                readers.add(reader);
            }
        }

        void play() {
            for (int i = 0; i < OPERATIONS; i++) {
                operate();
                freeWhatIsNotHeld();
                check(0);
                check(1);
            }
            heal();
            for (int reader = 0; reader < 2; reader++) {
                for (int holder = 0; holder < 2; holder++) {
                    prefill(holder);
                    deliver(inTransit.size() - 1, reader);
                    settle();
                    assertThat(expected.get(reader)).as("served once healed").isEmpty();
                }
            }
            assertThat(healedFailures()).as("nothing fails once healed").isZero();
            for (int reader = 0; reader < 2; reader++) {
                ModelEngine engine = readers.get(reader);
                assertThat(engine.rank().transport().counts())
                        .isEqualTo(new ModelCounts(1, 3, 2, 0));
                assertThat(engine.rank().memory().residentBytes()).isEqualTo(engine.regionBytes());
                if (!faults) {
                    assertThat(engine.failed()).isEmpty();
                    assertThat(engine.statistics().handshakes())
                            .as("one per registration that was read through")
                            .isEqualTo(pairings.get(reader).size());
                    assertThat(holders.get(reader).statistics().handshakes())
                            .as("one per registration that was written through")
                            .isEqualTo(pushed ? pairingsOfHolder(reader) : 0);
                }
            }
        }

        private long pairingsOfHolder(int holder) {
            return pairings.stream()
                    .flatMap(Set::stream)
                    .filter(pairing -> pairing.startsWith("P" + holder))
                    .count();
        }

        private ConnectorConfig.Builder config(String engineId) {
            return pushed ? world.pushConfig(engineId) : world.config(engineId);
        }

        /** The engine whose transport moves the blocks. */
        private ModelEngine mover(int which) {
            return pushed ? holders.get(which) : readers.get(which);
        }

        private long failuresBeforeHealing;

        private long healedFailures() {
            return readers.get(0).failed().size()
                    + readers.get(1).failed().size()
                    - failuresBeforeHealing;
        }

        private void operate() {
            int which = random.nextInt(2);
            switch (random.nextInt(faults ? 18 : 10)) {
                case 0, 1, 2 -> prefill(which);
                case 3, 4 -> {
                    if (!inTransit.isEmpty()) {
                        deliver(random.nextInt(inTransit.size()), which);
                    }
                }
                case 5, 6 -> world.tick();
                case 7 -> toggle(holders.get(which), () -> sleepHolder(which));
                case 8 -> toggle(readers.get(which), () -> sleepReader(which));
                case 9 -> mover(which).rank().transport().faults().setReadDelay(readDelay());
                case 10 -> restart(which);
                case 13 -> cycle(which);
                case 14, 15 -> revoke(which);
                case 11, 12 -> mover(which).rank().transport().faults().planRead(fault());
                default -> world.elapse(Duration.ofSeconds(random.nextInt(20)));
            }
        }

        /** Clocks of machines have nothing to do with one another. */
        private Duration clock() {
            return Duration.ofMillis(random.nextLong(-1_000_000_000, 1_000_000_000));
        }

        /** With faults, a read may outlive its holder's lease. */
        private Duration readDelay() {
            return faults && random.nextInt(4) == 0
                    ? Duration.ofSeconds(random.nextInt(50))
                    : Duration.ofMillis(random.nextInt(12));
        }

        /** Blocks of holders go to the next prompt as soon as they are not held any more. */
        private void freeWhatIsNotHeld() {
            for (ModelEngine holder : holders) {
                Map<String, int[]> blocks = held.getOrDefault(holder, new HashMap<>());
                for (String id : Set.copyOf(holder.sent())) {
                    int[] unheld = blocks.remove(id);
                    if (unheld != null) {
                        free(holder, unheld);
                    }
                }
            }
        }

        /** What routers and proxies make of parameters that they do not know. */
        private KvTransferParams onItsWay(KvTransferParams params) {
            if (!faults) {
                return params;
            }
            return Params.changed(
                    params,
                    json -> {
                        if (random.nextInt(3) == 0) {
                            json.remove("remote_instance_id");
                        }
                        if (random.nextInt(3) == 0) {
                            json.remove("remote_registration_epoch");
                            json.remove("remote_registration_generation");
                        }
                        if (random.nextInt(6) == 0) {
                            json.remove("remote_lease_deadline");
                            json.remove("remote_lease_seconds");
                        }
                    });
        }

        private void prefill(int which) {
            ModelEngine holder = holders.get(which);
            int[] blocks = allocate(holder, random.nextInt(1, 4));
            if (isAsleep(holder) || blocks.length == 0) {
                return;
            }
            long content = next++;
            KvTransferParams params =
                    holder.prefill(
                            "p" + content,
                            blocks.length * ModelEngine.BLOCK_TOKENS,
                            blocks,
                            content);
            held.computeIfAbsent(holder, _ -> new HashMap<>()).put("p" + content, blocks);
            inTransit.add(new InTransit(which, params, content, blocks, false));
        }

        private void deliver(int index, int which) {
            ModelEngine reader = readers.get(which);
            if (!repeats.get(which).isEmpty() && random.nextInt(3) == 0) {
                inTransit.add(index, repeats.get(which).removeFirst());
            }
            InTransit handOver = inTransit.get(index);
            int[] blocks = allocate(reader, handOver.blocks().length);
            if (isAsleep(reader) || blocks.length == 0) {
                return;
            }
            inTransit.remove(index);
            if (faults
                    && !healed
                    && !handOver.used()
                    && random.nextInt(6) == 0) { // a client that retries
                repeats.get(random.nextInt(2))
                        .add(
                                new InTransit(
                                        handOver.holder(),
                                        handOver.params(),
                                        handOver.content(),
                                        handOver.blocks(),
                                        true));
            }
            String id = "d" + next++;
            expected.get(which)
                    .put(
                            id,
                            new Expected(
                                    handOver.holder(),
                                    "p" + handOver.content(),
                                    handOver.content(),
                                    blocks));
            if (!faults) {
                pairings.get(which)
                        .add(
                                "P"
                                        + handOver.holder()
                                        + " epoch "
                                        + holders.get(handOver.holder()).scheduler().epoch()
                                        + " own "
                                        + wakes[which]);
            }
            reader.decode(
                    id,
                    blocks.length * ModelEngine.BLOCK_TOKENS,
                    onItsWay(handOver.params()),
                    blocks);
        }

        /** Looks at every read that was reported since the last look. */
        private void check(int which) {
            ModelEngine reader = readers.get(which);
            for (String id : Set.copyOf(reader.received())) {
                if (checked.get(which).add(id)) {
                    Expected read = Objects.requireNonNull(expected.get(which).remove(id));
                    if (!reader.failed().contains(id)) {
                        assertThat(reader.holds(read.blocks(), read.content()))
                                .as("bytes of %s from P%d as %s", id, read.holder(), read.heldAs())
                                .isTrue();
                    }
                    free(reader, read.blocks());
                }
            }
        }

        private void sleepHolder(int which) {
            ModelEngine holder = holders.get(which);
            if (!faults) { // a drained pause: all hand-overs are read first
                for (int i = inTransit.size() - 1; i >= 0; i--) {
                    if (inTransit.get(i).holder() == which) {
                        wakeReaders();
                        settle();
                        deliver(i, random.nextInt(2));
                    }
                }
                settle();
                assertThat(holder.scheduler().heldRequests()).isZero();
            }
            if (addressing == Addressing.VIRTUAL) { // as an engine does before its memory goes
                if (random.nextBoolean()) {
                    holder.scheduler().revoke();
                }
                for (int i = 0; i < 60 && holder.scheduler().heldRequests() > 0; i++) {
                    world.elapse(Duration.ofSeconds(random.nextInt(10)));
                    world.tick();
                }
                if (faults && pushed && holder.scheduler().heldRequests() > 0) {
                    return; // a write hangs, and the engine stays awake
                }
                assertThat(holder.scheduler().heldRequests()).as("leases end").isZero();
            }
            try {
                holder.sleep();
            } catch (ReleaseTimeoutException e) { // a write does not end
                assertThat(faults && pushed).as(e.getMessage()).isTrue();
                holder.publish();
                return;
            }
            asleep.put(holder, true);
            set(holder).clear();
            held.remove(holder);
        }

        /** A holder takes everything back, and gives its blocks to others as soon as it may. */
        private void revoke(int which) {
            ModelEngine holder = holders.get(which);
            if (isAsleep(holder)) {
                return;
            }
            holder.scheduler().revoke();
            for (int i = random.nextInt(20); i > 0; i--) {
                world.tick();
                freeWhatIsNotHeld();
                check(0);
                check(1);
            }
            holder.publish();
        }

        private void sleepReader(int which) {
            ModelEngine reader = readers.get(which);
            if (!faults) { // a drained pause
                settle();
            }
            try {
                reader.sleep();
                asleep.put(reader, true);
            } catch (ReleaseTimeoutException e) {
                assertThat(faults).as(e.getMessage()).isTrue();
                reader.publish();
            }
        }

        private void toggle(ModelEngine engine, Runnable sleep) {
            if (isAsleep(engine)) {
                wake(engine);
            } else {
                sleep.run();
            }
        }

        private void wake(ModelEngine engine) {
            engine.wake();
            asleep.put(engine, false);
            int reader = readers.indexOf(engine);
            if (reader >= 0) {
                wakes[reader]++;
            }
        }

        private void wakeReaders() {
            readers.stream().filter(this::isAsleep).forEach(this::wake);
        }

        /** Pages and registration change before the routers' next request. */
        private void cycle(int which) {
            ModelEngine holder = holders.get(which);
            if (!isAsleep(holder)) {
                sleepHolder(which);
                if (isAsleep(holder)) {
                    wake(holder);
                }
            }
        }

        private void restart(int which) {
            ModelEngine old = holders.get(which);
            int port = old.scheduler().sideChannelPort();
            old.kill();
            holders.set(
                    which,
                    awake(
                            world.start(
                                    config("P" + which)
                                            .instanceId("again-" + next++)
                                            .sideChannelPort(port),
                                    clock())));
        }

        private ModelFault fault() {
            return switch (random.nextInt(5)) {
                case 0 -> new ModelFault.FailPost();
                case 1 -> new ModelFault.ThrowOnPoll();
                case 2 -> new ModelFault.FailHalfWay();
                case 3 -> new ModelFault.NeverComplete();
                default -> new ModelFault.FailAndRefuseRelease(random.nextInt(20));
            };
        }

        private void heal() {
            List<ModelEngine> all = new ArrayList<>(holders);
            all.addAll(readers);
            all.stream().filter(this::isAsleep).forEach(this::wake);
            for (ModelEngine engine : all) {
                engine.rank().transport().faults().forgetPlans();
                engine.rank().transport().faults().setReadDelay(Duration.ZERO);
                engine.rank().transport().failStuckReads();
            }
            if (faults) { // reads that never complete
                world.tick();
                world.elapse(Duration.ofMinutes(3));
            }
            settle();
            inTransit.clear();
            repeats.forEach(List::clear);
            healed = true;
            holders.forEach(holder -> set(holder).clear());
            held.clear();
            failuresBeforeHealing =
                    readers.get(0).failed().size() + (long) readers.get(1).failed().size();
        }

        private void settle() {
            world.settle();
            check(0);
            check(1);
        }

        private int[] allocate(ModelEngine engine, int count) {
            Set<Integer> used = set(engine);
            int[] blocks =
                    random.ints(0, ModelEngine.BLOCKS)
                            .limit(200)
                            .distinct()
                            .filter(block -> !used.contains(block))
                            .limit(count)
                            .toArray();
            if (blocks.length < count || isAsleep(engine)) {
                return new int[0];
            }
            for (int block : blocks) {
                used.add(block);
            }
            return blocks;
        }

        private void free(ModelEngine engine, int[] blocks) {
            for (int block : blocks) {
                set(engine).remove(block);
            }
        }

        private Set<Integer> set(ModelEngine engine) {
            return taken.computeIfAbsent(engine, _ -> new HashSet<>());
        }

        private ModelEngine awake(ModelEngine engine) {
            asleep.put(engine, false);
            return engine;
        }

        private boolean isAsleep(ModelEngine engine) {
            return Objects.requireNonNull(asleep.get(engine));
        }
    }
}
