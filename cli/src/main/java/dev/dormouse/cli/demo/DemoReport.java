package dev.dormouse.cli.demo;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.core.JsonProcessingException;
import dev.dormouse.cli.fleet.Json;
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
record DemoReport(String model, String transport, Blindness blindness, List<CaseResult> cases) {
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

    @JsonProperty("ok")
    boolean ok() {
        return blindness.ok() && cases.stream().allMatch(CaseResult::ok);
    }

    String toJson() {
        try {
            return Json.MAPPER
                    .writerWithDefaultPrettyPrinter()
                    .writeValueAsString(Json.MAPPER.valueToTree(this));
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(
                    "a report of plain values cannot fail to be written", e);
        }
    }

    /** The table that a person reads. */
    String toTable() {
        List<String> lines = new ArrayList<>();
        lines.add(
                String.format(
                        Locale.ROOT,
                        "%-18s %6s %8s %8s %8s %8s %7s %6s %11s %10s %10s",
                        "case",
                        "cycles",
                        "equal",
                        "awake",
                        "asleep",
                        "woken",
                        "failed",
                        "reads",
                        "handshakes",
                        "first req.",
                        "control"));
        lines.add(
                String.format(
                        Locale.ROOT,
                        "%-18s %6s %8s %8s %8s %8s %7s %6s %11s %10s %10s",
                        "",
                        "",
                        "",
                        "MiB",
                        "MiB",
                        "MiB",
                        "",
                        "",
                        "per wake",
                        "ms",
                        "ms"));
        cases.forEach(result -> lines.add(row(result)));
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

    private static String row(CaseResult result) {
        boolean slept = result.cycles() > 0;
        return String.format(
                Locale.ROOT,
                "%-18s %6d %8s %8s %8s %8s %7d %6d %11s %10s %10.0f",
                result.name(),
                result.cycles(),
                result.equal() + "/" + result.checked(),
                slept ? whole(result.awakeMiB()) : "-",
                slept ? whole(result.asleepMiB()) : "-",
                slept ? whole(result.wokenMiB()) : "-",
                result.failedTransfers(),
                result.remoteReads(),
                slept ? String.format(Locale.ROOT, "%.2f", result.handshakesPerWake()) : "-",
                whole(result.firstRequestMillis()),
                result.controlMillis());
    }

    private static String whole(double value) {
        return String.format(Locale.ROOT, "%.0f", value);
    }
}
