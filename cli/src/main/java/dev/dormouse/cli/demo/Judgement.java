package dev.dormouse.cli.demo;

import dev.dormouse.cli.fleet.Counters;
import java.util.ArrayList;
import java.util.List;

/** Collects, in words, what is wrong with a case. */
final class Judgement {
    /** How much of the KV cache's size may be missing, or too much. */
    private static final double TOLERANCE = 0.05;

    private final List<String> complaints = new ArrayList<>();

    /** Every output must equal the oracle's. */
    void outputs(int checked, int equal) {
        complain(equal != checked, "%d of %d outputs differ".formatted(checked - equal, checked));
    }

    /**
     * Every prompt must be read from the prefill engine, exactly once, and nothing of it computed
     * again.
     *
     * @param reads how many reads that makes, over all ranks
     */
    void transfers(Counters decode, Counters prefill, int reads) {
        long failed = decode.failedTransfers() + prefill.failedTransfers();
        complain(failed != 0, "%d transfers failed".formatted(failed));
        complain(
                decode.reads() != reads,
                "%d remote reads instead of %d".formatted(decode.reads(), reads));
        long recomputed = decode.computedPromptTokens();
        complain(
                recomputed != 0,
                "the decode engine computed %d prompt tokens itself".formatted(recomputed));
    }

    void handshakes(long seen, long expected) {
        complain(seen != expected, "%d handshakes instead of %d".formatted(seen, expected));
    }

    /** Asleep the KV cache must be gone; woken it must be there, and only once. */
    void memory(double awakeMiB, double asleepMiB, double wokenMiB, double kvCacheMiB) {
        complain(
                awakeMiB - asleepMiB < (1 - TOLERANCE) * kvCacheMiB,
                "asleep only %.0f MiB of a KV cache of %.0f MiB came back"
                        .formatted(awakeMiB - asleepMiB, kvCacheMiB));
        complain(
                wokenMiB - awakeMiB > TOLERANCE * kvCacheMiB,
                "woken it holds %.0f MiB more than before".formatted(wokenMiB - awakeMiB));
    }

    void errors(int errors, int requests) {
        complain(errors != 0, "%d of %d requests failed".formatted(errors, requests));
    }

    List<String> complaints() {
        return List.copyOf(complaints);
    }

    private void complain(boolean wrong, String complaint) {
        if (wrong) {
            complaints.add(complaint);
        }
    }
}
