package dev.dormouse.transport.nixl;

import java.util.List;
import java.util.Map;

/** Engines that write prompts into each other's memory, and sleep. */
final class RdmaPush implements RdmaScenario {
    private static final int ROUNDS = 3;

    @Override
    public void run(RdmaEngines engines, RdmaChecks checks) {
        EngineProcess owner = engines.start(Map.of(), "P", 0, "push");
        EngineProcess receiver = engines.start(Map.of(), "D", 0, "push");
        String outcome = engines.connect(owner, receiver);
        checks.check("the first push is right", outcome.equals(RdmaEngines.GOOD), outcome);
        RdmaHoldings before = RdmaHoldings.of(owner.process().pid());
        int right = 0;
        int cycles = 0;
        for (int round = 0; round < ROUNDS; round++) {
            for (List<EngineProcess> sleepers :
                    List.of(List.of(receiver), List.of(owner), List.of(owner, receiver))) {
                sleepers.forEach(EngineProcess::sleep);
                sleepers.forEach(EngineProcess::wake);
                outcome = engines.read(owner, receiver);
                right += outcome.equals(RdmaEngines.GOOD) ? 1 : 0;
                cycles++;
            }
        }
        checks.check(
                "every push after a wake is right: receiver, owner, both",
                right == cycles,
                right + " of " + cycles);
        RdmaHoldings after = RdmaHoldings.of(owner.process().pid());
        checks.check(
                "the owner has no queue pair or memory region more",
                after.queuePairs() == before.queuePairs() && after.regions() == before.regions(),
                "before " + before + ", after " + after);
    }
}
