package dev.dormouse.cli.demo;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Cases as a person reads them. */
final class CaseTable {
    private CaseTable() {}

    /** The lines of a table with a row for each case. */
    static List<String> of(List<CaseResult> cases) {
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
        return lines;
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
