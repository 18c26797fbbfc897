package dev.dormouse.transport.nixl;

import java.util.Map;

/** UCX's cache of registrations, which the product switches off, left on. */
final class RdmaCache implements RdmaScenario {
    /**
     * UCX lets go of what the cache holds in vain whenever it next registers or gives back
     * anything, which something else may make it do between the sleep and the look at it.
     */
    private static final int MOST_SLEEPS = 12;

    private static final Map<String, String> CACHE_ON = Map.of("UCX_RCACHE_ENABLE", "y");

    @Override
    public void run(RdmaEngines engines, RdmaChecks checks) {
        try (EngineProcess owner = engines.start(CACHE_ON, "caching", 0, "pull")) {
            run(engines, owner, engines.reader(), checks);
        }
    }

    private static void run(
            RdmaEngines engines, EngineProcess owner, EngineProcess reader, RdmaChecks checks) {
        String before = engines.connect(owner, reader);
        checks.check("before the sleep a read is right", before.equals(RdmaEngines.GOOD), before);
        Sleep sleep = Sleep.of(owner);
        for (int i = 1; i < MOST_SLEEPS && !sleep.keepsAll(); i++) {
            owner.wake();
            checks.note("again, for UCX has looked through its cache: " + sleep);
            sleep = Sleep.of(owner);
        }
        owner.wake();
        String after = engines.read(owner, reader);
        checks.check(
                "with the cache on, deregistered pages stay registered and pinned",
                sleep.keepsAll(),
                sleep);
        checks.check(
                "and no memory of the KV cache comes back",
                sleep.returnedKib() < RdmaEngines.KV_KIB / 2,
                sleep.returnedKib() + " KiB of " + RdmaEngines.KV_KIB);
        checks.note("after the wake: " + after + ", " + RdmaHoldings.of(owner.process().pid()));
    }

    /** What an owner holds before and after it has fallen asleep. */
    private record Sleep(RdmaHoldings awake, RdmaHoldings asleep, long returnedKib) {
        static Sleep of(EngineProcess owner) {
            RdmaHoldings awake = RdmaHoldings.of(owner.process().pid());
            long freeKib = RdmaHoldings.freeKib();
            owner.sleep();
            RdmaHoldings asleep = RdmaHoldings.of(owner.process().pid());
            return new Sleep(awake, asleep, RdmaHoldings.freeKib() - freeKib);
        }

        boolean keepsAll() {
            return asleep.regions() == awake.regions() && asleep.pinnedKib() == awake.pinnedKib();
        }

        @Override
        public String toString() {
            return "awake " + awake + ", asleep " + asleep;
        }
    }
}
