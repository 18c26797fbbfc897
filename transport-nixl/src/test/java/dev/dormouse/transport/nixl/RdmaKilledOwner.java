package dev.dormouse.transport.nixl;

import java.util.Map;

/** An owner that is killed before and during reads of its memory. */
final class RdmaKilledOwner implements RdmaScenario {
    private static final int PROMPTS = 16;

    @Override
    public void run(RdmaEngines engines, RdmaChecks checks) {
        EngineProcess owner = engines.owner();
        EngineProcess reader = engines.reader();
        String before = engines.connect(owner, reader);
        checks.check("before the kill a read is right", before.equals(RdmaEngines.GOOD), before);
        int port = owner.port();
        int seed = engines.nextPrompts(PROMPTS + 1);
        String underWay = owner.prefill(seed, PROMPTS);
        String unread = owner.prefill(seed + PROMPTS, 1);

        reader.begin(seed, underWay);
        owner.process().kill();
        reader.goOn();
        String outcome = reader.settle();
        checks.check(
                "reads from a killed owner fail, and none counts that brought wrong bytes",
                outcome.contains("FAILED") && !outcome.contains("WRONG"),
                outcome);
        reader.decode(seed + PROMPTS, unread);
        String late = reader.await();
        checks.check("a request that comes later fails", late.equals("{FAILED=1}"), late);
        checks.check(
                "nobody writes blocks that are free again", reader.unusedIsUntouched(), "poison");

        EngineProcess successor = engines.start(Map.of(), "P", port, "pull");
        String recovered = engines.connect(successor, reader);
        checks.check(
                "the reader lives, and reads from the successor",
                recovered.equals(RdmaEngines.GOOD),
                recovered);
        int status = reader.process().end();
        checks.check("the reader ends in order", status == 0, "status " + status);
    }
}
