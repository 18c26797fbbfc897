package dev.dormouse.cli.demo;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * A case that puts engines to sleep, wakes them, and asks every prompt again, a number of times.
 *
 * <p>Judges what it saw: equal outputs, one remote read per prompt and no prompt computed by the reader, no failed transfer,
 * exactly one handshake per wake, and the memory given back and taken again within five percent of the KV cache.
 */
final class SleepCase {
    /** How much of the KV cache's size may be missing, or too much. */
    private static final double TOLERANCE = 0.05;

    /** How engines fall asleep and wake. */
    interface Cycle {
        /** Falls asleep; the memory must be gone when it returns. */
        void sleep();

        /** Wakes; everything must be back when it returns. */
        void wake();
    }

    private final String name;
    private final Fleet fleet;
    private final Oracle oracle;
    private final List<EngineUnderTest> sleepers;
    private final double kvCacheMiB;
    private final double controlMillis;

    private double awakeMiB;
    private double asleepMiB;
    private double wokenMiB;
    private int checked;
    private int equal;
    private double firstRequestMillis;

    SleepCase(
            String name,
            Fleet fleet,
            Oracle oracle,
            List<EngineUnderTest> sleepers,
            double kvCacheMiB,
            double controlMillis) {
        this.name = name;
        this.fleet = fleet;
        this.oracle = oracle;
        this.sleepers = sleepers;
        this.kvCacheMiB = kvCacheMiB;
        this.controlMillis = controlMillis;
    }

    CaseResult run(int cycles, Cycle cycle, Progress progress) {
        Counters decodeBefore = fleet.decode().counters();
        Counters prefillBefore = fleet.prefill().counters();
        for (int i = 1; i <= cycles; i++) {
            progress.say(name + ": cycle " + i + " of " + cycles);
            awakeMiB = memory();
            cycle.sleep();
            asleepMiB = Math.max(asleepMiB, memory());
            cycle.wake();
            wokenMiB = Math.max(wokenMiB, memory());
            check();
        }
        Counters decode = fleet.decode().counters().minus(decodeBefore);
        Counters prefill = fleet.prefill().counters().minus(prefillBefore);
        return judge(cycles, decode, prefill);
    }

    private void check() {
        Oracle.Check check = oracle.check(fleet.router());
        checked += oracle.prompts().size();
        equal += check.equal();
        firstRequestMillis = Math.max(firstRequestMillis, check.millis().getFirst());
    }

    private double memory() {
        return sleepers.stream().mapToDouble(EngineUnderTest::memoryMiB).sum();
    }

    private CaseResult judge(int cycles, Counters decode, Counters prefill) {
        long failed = decode.failedTransfers() + prefill.failedTransfers();
        long recomputed = decode.computedPromptTokens() - checked;
        double handshakes = decode.handshakes() / (double) cycles;
        double kv = kvCacheMiB * sleepers.size();
        List<String> complaints = new ArrayList<>();
        complain(complaints, equal != checked, "%d of %d outputs differ", checked - equal, checked);
        complain(complaints, failed != 0, "%d transfers failed", failed);
        complain(complaints, decode.reads() != checked, "%d remote reads for %d prompts", decode.reads(), checked);
        complain(complaints, recomputed != 0, "the decode engine computed %d prompt tokens itself", recomputed);
        complain(complaints, handshakes != 1, "%.2f handshakes per wake instead of 1", handshakes);
        complain(
                complaints,
                awakeMiB - asleepMiB < (1 - TOLERANCE) * kv,
                "asleep %.0f MiB came back of a KV cache of %.0f MiB",
                awakeMiB - asleepMiB,
                kv);
        complain(
                complaints,
                wokenMiB - awakeMiB > TOLERANCE * kv,
                "woken it holds %.0f MiB more than before",
                wokenMiB - awakeMiB);
        return new CaseResult(
                name,
                cycles,
                checked,
                equal,
                awakeMiB,
                asleepMiB,
                wokenMiB,
                failed,
                decode.reads(),
                recomputed,
                handshakes,
                firstRequestMillis,
                controlMillis,
                complaints);
    }

    private static void complain(List<String> complaints, boolean wrong, String format, Object... values) {
        if (wrong) {
            complaints.add(String.format(Locale.ROOT, format, values));
        }
    }
}
