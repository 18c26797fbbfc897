package dev.dormouse.transport.nixl;

import java.util.Map;

/** An owner that replaces its pages under a live registration: what the product cures. */
final class RdmaFault implements RdmaScenario {
    @Override
    public void run(RdmaEngines engines, RdmaChecks checks) {
        try (EngineProcess owner =
                engines.start(Map.of(), "faulty", 0, "pull", "faulty", "keep-content")) {
            run(engines, owner, engines.reader(), checks);
        }
    }

    private static void run(
            RdmaEngines engines, EngineProcess owner, EngineProcess reader, RdmaChecks checks) {
        String before = engines.connect(owner, reader);
        checks.check("before the sleep a read is right", before.equals(RdmaEngines.GOOD), before);
        RdmaHoldings awake = RdmaHoldings.of(owner.process().pid());
        long freeAwake = RdmaHoldings.freeKib();

        owner.sleep();
        RdmaHoldings asleep = RdmaHoldings.of(owner.process().pid());
        long returned = RdmaHoldings.freeKib() - freeAwake;
        owner.wake();
        long doubled = freeAwake - RdmaHoldings.freeKib();
        int seed = engines.nextPrompts(1);
        String after = reader.read(owner, seed);

        checks.check(
                "without deregistration a read counts as done and brings an OLD prompt",
                after.equals("{WRONG=1}") && reader.content() > 0,
                after + ": of prompt " + seed + " the bytes of " + reader.content());
        checks.check(
                "and nobody is told of an error",
                !reader.process().output().contains("ERROR")
                        && !owner.process().output().contains("ERROR"),
                "logs without ERROR");
        checks.check(
                "asleep, the old pages stay registered and pinned",
                asleep.regions() == awake.regions() && asleep.pinnedKib() == awake.pinnedKib(),
                "awake " + awake + ", asleep " + asleep);
        checks.check(
                "no memory of the KV cache comes back",
                returned < RdmaEngines.KV_KIB / 2,
                returned + " KiB of " + RdmaEngines.KV_KIB);
        checks.check(
                "after the wake the KV cache is there twice",
                doubled > RdmaEngines.KV_KIB - RdmaEngines.NOISE_KIB,
                doubled + " KiB more");
    }
}
