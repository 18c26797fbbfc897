package dev.dormouse.cli.demo;

import dev.dormouse.cli.fleet.Counters;
import dev.dormouse.cli.fleet.EngineProcess;
import dev.dormouse.cli.fleet.Fleet;
import dev.dormouse.cli.fleet.Progress;
import java.util.List;

/**
 * A case that puts engines to sleep, wakes them, and asks every prompt again, a number of times.
 *
 * <p>Judges what it saw: equal outputs, one remote read per prompt and no prompt computed by the
 * reader, no failed transfer, exactly one handshake of each rank per wake, and the memory given
 * back and taken again within five percent of the KV cache.
 */
final class SleepCase {
    /** How engines fall asleep and wake. */
    interface Cycle {
        /** Falls asleep; the memory must be gone when it returns. */
        void sleep();

        /** Wakes; everything must be back when it returns. */
        void wake();

        /** Waits for what goes on beside it, after the memory was looked at. */
        default void settle() {}
    }

    private final String name;
    private final Fleet fleet;
    private final Oracle oracle;
    private final List<EngineProcess> sleepers;
    private final double kvCacheMiB;
    private final double controlMillis;

    private int backgroundRequests;
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
            List<EngineProcess> sleepers,
            double kvCacheMiB,
            double controlMillis) {
        this.name = name;
        this.fleet = fleet;
        this.oracle = oracle;
        this.sleepers = sleepers;
        this.kvCacheMiB = kvCacheMiB;
        this.controlMillis = controlMillis;
    }

    /**
     * Other requests that run meanwhile: they are read as well, but their outputs are not compared.
     */
    SleepCase withBackground(int requests) {
        backgroundRequests = requests;
        return this;
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
            cycle.settle();
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
        return fleet.memoryMiB(sleepers);
    }

    private CaseResult judge(int cycles, Counters decode, Counters prefill) {
        Judgement judgement = new Judgement();
        judgement.outputs(checked, equal);
        judgement.transfers(
                decode, prefill, (checked + backgroundRequests) * fleet.readsPerPrompt());
        judgement.handshakes(decode.handshakes(), (long) cycles * fleet.decodeRanks());
        judgement.memory(awakeMiB, asleepMiB, wokenMiB, kvCacheMiB * sleepers.size());
        return new CaseResult(
                name,
                cycles,
                checked,
                equal,
                awakeMiB,
                asleepMiB,
                wokenMiB,
                decode.failedTransfers() + prefill.failedTransfers(),
                decode.reads(),
                decode.computedPromptTokens(),
                decode.handshakes() / (double) (cycles * fleet.decodeRanks()),
                firstRequestMillis,
                controlMillis,
                judgement.complaints());
    }
}
