package dev.dormouse.cli.demo;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * All that the demonstration found.
 *
 * @param model the served model
 * @param transport the transport that moved the KV blocks
 * @param blindness outputs that equal their oracle although another prompt's KV was read on purpose
 * @param cases one row per case
 */
record DemoReport(String model, String transport, Blindness blindness, List<CaseResult> cases)
        implements Report {
    /**
     * The control of the control: if wrong KV gave right outputs, equal outputs would prove
     * nothing.
     *
     * @param checked prompts that were answered from another prompt's KV
     * @param equal answers that equal the oracle's all the same
     */
    record Blindness(int checked, int equal) {
        /** At least nine of ten outputs must differ. */
        boolean ok() {
            return equal * 10 <= checked;
        }
    }

    @Override
    public boolean ok() {
        return blindness.ok() && cases.stream().allMatch(CaseResult::ok);
    }

    @Override
    public String toTable() {
        List<String> lines = new ArrayList<>(CaseTable.of(cases));
        lines.add("");
        lines.add(
                String.format(
                        Locale.ROOT,
                        "Another prompt's KV, read on purpose: %d of %d outputs differ.",
                        blindness.checked() - blindness.equal(),
                        blindness.checked()));
        for (CaseResult result : cases) {
            result.complaints()
                    .forEach(complaint -> lines.add("WRONG  " + result.name() + ": " + complaint));
        }
        if (!blindness.ok()) {
            lines.add("WRONG  the outputs cannot tell right KV from wrong KV");
        }
        lines.add(
                ok()
                        ? "All outputs equal the engine that never slept."
                        : "The demonstration failed.");
        return String.join(System.lineSeparator(), lines);
    }
}
