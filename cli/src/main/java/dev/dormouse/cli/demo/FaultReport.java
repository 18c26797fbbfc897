package dev.dormouse.cli.demo;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * What engines do whose mappings outlive their pages: the fault, for once wanted.
 *
 * @param model the served model
 * @param transport the transport that moved the KV blocks
 * @param kvCacheMiB KV cache of each engine
 * @param cases the awake control, and a sleep of the prefill engine
 */
record FaultReport(String model, String transport, int kvCacheMiB, List<CaseResult> cases)
        implements Report {
    /** The control is right; after the sleep nothing is, nobody says so, and nothing came back. */
    @Override
    public boolean ok() {
        CaseResult fault = cases.getLast();
        return cases.getFirst().ok()
                && fault.equal() == 0
                && fault.failedTransfers() == 0
                && fault.remoteReads() >= fault.checked()
                && returnedMiB(fault) < kvCacheMiB / 2.0;
    }

    private static double returnedMiB(CaseResult fault) {
        return fault.awakeMiB() - fault.asleepMiB();
    }

    @Override
    public String toTable() {
        CaseResult fault = cases.getLast();
        List<String> lines = new ArrayList<>(CaseTable.of(cases));
        lines.add("");
        cases.getFirst().complaints().forEach(complaint -> lines.add("WRONG  awake: " + complaint));
        lines.add(
                String.format(
                        Locale.ROOT,
                        "Without revocation: %d of %d outputs equal after the wake, %d errors; asleep %.0f of %d MiB came back, woken %.0f MiB more are held than before.",
                        fault.equal(),
                        fault.checked(),
                        fault.failedTransfers(),
                        Math.max(0, returnedMiB(fault)),
                        kvCacheMiB,
                        Math.max(0, fault.wokenMiB() - fault.awakeMiB())));
        lines.add(
                ok()
                        ? "That is the fault. The same command without --without-revocation shows the cure."
                        : "The fault does not show as it should.");
        return String.join(System.lineSeparator(), lines);
    }
}
