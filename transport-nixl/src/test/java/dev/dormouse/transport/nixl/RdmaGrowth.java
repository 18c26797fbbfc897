package dev.dormouse.transport.nixl;

/** Many sleeps of an owner that is read after each: what is left of them, on both sides. */
final class RdmaGrowth implements RdmaScenario {
    private static final int WARM_CYCLES = 20;
    private static final int CYCLES = 60;

    private static final int REPORTED_CYCLES = 20;

    /** The requirement for host memory, by cycle and side. */
    private static final double LIMIT_KIB = 16;

    /** Connections of the side channel, which come and go. */
    private static final int DESCRIPTORS_IN_USE = 4;

    @Override
    public void run(RdmaEngines engines, RdmaChecks checks) {
        EngineProcess owner = engines.owner();
        EngineProcess reader = engines.reader();
        String outcome = engines.connect(owner, reader);
        int right = 0;
        RdmaHoldings ownerWarm = RdmaHoldings.of(owner.process().pid());
        RdmaHoldings readerWarm = RdmaHoldings.of(reader.process().pid());
        for (int cycle = 1; cycle <= CYCLES && outcome.equals(RdmaEngines.GOOD); cycle++) {
            owner.sleep();
            owner.wake();
            outcome = engines.read(owner, reader);
            right += outcome.equals(RdmaEngines.GOOD) ? 1 : 0;
            if (cycle == WARM_CYCLES) {
                ownerWarm = RdmaHoldings.of(owner.process().pid());
                readerWarm = RdmaHoldings.of(reader.process().pid());
            }
            if (cycle % REPORTED_CYCLES == 0) {
                checks.note(
                        "after %d cycles: owner %s, reader %s KiB"
                                .formatted(
                                        cycle,
                                        RdmaHoldings.shares(owner.process().pid()),
                                        RdmaHoldings.shares(reader.process().pid())));
            }
        }
        checks.check("every cycle's read is right", right == CYCLES, right + " of " + CYCLES);
        judge("owner", ownerWarm, RdmaHoldings.of(owner.process().pid()), checks);
        judge("reader", readerWarm, RdmaHoldings.of(reader.process().pid()), checks);
    }

    private static void judge(String side, RdmaHoldings warm, RdmaHoldings now, RdmaChecks checks) {
        checks.note(side + " after " + WARM_CYCLES + " cycles: " + warm);
        checks.note(side + " after " + CYCLES + " cycles: " + now);
        double kib = (now.residentKib() - warm.residentKib()) / (double) (CYCLES - WARM_CYCLES);
        checks.check(
                side + ": at most " + LIMIT_KIB + " KiB of memory are left of a cycle",
                kib <= LIMIT_KIB,
                "%.1f KiB".formatted(kib));
        checks.check(
                side + ": no queue pair, memory region or descriptor is left, and nothing pinned",
                now.queuePairs() == warm.queuePairs()
                        && now.regions() == warm.regions()
                        && now.pinnedKib() == warm.pinnedKib()
                        && now.descriptors() <= warm.descriptors() + DESCRIPTORS_IN_USE,
                "queue pairs %+d, regions %+d, pinned %+d KiB, descriptors %+d"
                        .formatted(
                                now.queuePairs() - warm.queuePairs(),
                                now.regions() - warm.regions(),
                                now.pinnedKib() - warm.pinnedKib(),
                                now.descriptors() - warm.descriptors()));
    }
}
