package dev.dormouse.transport.nixl;

import java.util.ArrayList;
import java.util.List;

/** Sleeps of the owner, the reader and both, woken in either order of the tags. */
final class RdmaCure implements RdmaScenario {
    private static final int ROUNDS = 4;

    private int cycles;
    private int right;
    private int oneHandshake;
    private int unpinned;
    private final List<Long> returnedKib = new ArrayList<>();
    private final List<String> oddities = new ArrayList<>();

    @Override
    public void run(RdmaEngines engines, RdmaChecks checks) {
        EngineProcess owner = engines.owner();
        EngineProcess reader = engines.reader();
        String first = engines.connect(owner, reader);
        checks.check("the first read is right", first.equals(RdmaEngines.GOOD), first);
        for (int round = 0; round < ROUNDS; round++) {
            for (boolean kvFirst : new boolean[] {false, true}) {
                cycle(engines, List.of(owner), kvFirst);
                cycle(engines, List.of(reader), kvFirst);
                cycle(engines, List.of(owner, reader), kvFirst);
            }
            checks.note(right + " of " + cycles + " cycles are right so far");
        }
        checks.check(
                "every read after a wake is right: owner, reader, both; both orders of tags",
                right == cycles,
                right + " of " + cycles + " cycles");
        checks.check(
                "every wake costs exactly one handshake",
                oneHandshake == cycles,
                oneHandshake + " of " + cycles);
        checks.check(
                "asleep, no engine has the KV cache registered or pinned",
                unpinned == returnedKib.size(),
                unpinned + " of " + returnedKib.size() + " sleeps");
        long least = returnedKib.stream().sorted().toList().get(returnedKib.size() / 2);
        checks.check(
                "asleep, the memory of the KV cache is back",
                least > RdmaEngines.KV_KIB - RdmaEngines.NOISE_KIB,
                least + " KiB of " + RdmaEngines.KV_KIB + " (median)");
        oddities.forEach(checks::note);
    }

    private void cycle(RdmaEngines engines, List<EngineProcess> sleepers, boolean kvFirst) {
        EngineProcess owner = engines.owner();
        EngineProcess reader = engines.reader();
        int handshakes = reader.handshakes();
        sleepers.forEach(this::sleep);
        for (EngineProcess sleeper : sleepers) {
            if (kvFirst) {
                sleeper.wakeKvFirst();
            } else {
                sleeper.wake();
            }
        }
        String outcome = engines.read(owner, reader);
        int taken = reader.handshakes() - handshakes;
        cycles++;
        boolean good = outcome.equals(RdmaEngines.GOOD);
        right += good ? 1 : 0;
        oneHandshake += taken == 1 ? 1 : 0;
        if (!good || taken != 1) {
            oddities.add("cycle " + cycles + ": " + outcome + " handshakes=" + taken);
        }
    }

    private void sleep(EngineProcess engine) {
        RdmaHoldings awake = RdmaHoldings.of(engine.process().pid());
        long freeKib = RdmaHoldings.freeKib();
        engine.sleep();
        RdmaHoldings asleep = RdmaHoldings.of(engine.process().pid());
        returnedKib.add(RdmaHoldings.freeKib() - freeKib);
        boolean gone =
                asleep.regions() == awake.regions() - 1
                        && asleep.pinnedKib() == awake.pinnedKib() - RdmaEngines.KV_KIB;
        unpinned += gone ? 1 : 0;
        if (!gone) {
            oddities.add("cycle " + (cycles + 1) + ": awake " + awake + ", asleep " + asleep);
        }
    }
}
