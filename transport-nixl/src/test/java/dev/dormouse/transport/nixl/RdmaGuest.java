package dev.dormouse.transport.nixl;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The program of the guest with a software RDMA device (see {@code rdma-guest}): engines in
 * processes of their own, with the real connector, transport and memory, over verbs that pin pages.
 */
final class RdmaGuest {
    private static final Map<String, RdmaScenario> SCENARIOS = scenarios();

    private RdmaGuest() {}

    private static Map<String, RdmaScenario> scenarios() {
        Map<String, RdmaScenario> scenarios = new LinkedHashMap<>();
        scenarios.put("fault", new RdmaFault());
        scenarios.put("cure", new RdmaCure());
        scenarios.put("growth", new RdmaGrowth());
        scenarios.put("cache", new RdmaCache());
        scenarios.put("killed", new RdmaKilledOwner());
        scenarios.put("push", new RdmaPush());
        return scenarios;
    }

    /** Takes names of scenarios; none for all. */
    public static void main(String[] names) {
        RdmaChecks checks = new RdmaChecks();
        try (RdmaEngines engines = new RdmaEngines()) {
            for (String name : names.length == 0 ? SCENARIOS.keySet() : List.of(names)) {
                RdmaScenario scenario = SCENARIOS.get(name);
                if (scenario == null) {
                    checks.check("scenario " + name, false, "there are " + SCENARIOS.keySet());
                } else {
                    run(name, scenario, engines, checks);
                }
            }
        }
        System.exit(checks.end() ? 0 : 1);
    }

    private static void run(
            String name, RdmaScenario scenario, RdmaEngines engines, RdmaChecks checks) {
        checks.note("scenario " + name);
        int failedBefore = checks.failed();
        try {
            scenario.run(engines, checks);
        } catch (RuntimeException | AssertionError e) {
            e.printStackTrace(System.out);
            checks.check("scenario " + name + " comes to its end", false, "see above");
        }
        if (checks.failed() > failedBefore) {
            System.out.println(engines.output());
        }
    }
}
