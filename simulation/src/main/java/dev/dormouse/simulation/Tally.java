package dev.dormouse.simulation;

import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.engine.EngineStatistics;
import dev.dormouse.router.routing.Role;

/** Counts what happens in a world. */
final class Tally {
    private long answered;
    private long refused;
    private long transitions;
    private long deaths;
    private Simulation.Coverage ofProcesses = Simulation.Coverage.NONE;

    void ended(Request.End how) {
        switch (how) {
            case ANSWERED -> answered++;
            case REFUSED -> refused++;
        }
    }

    void changed() {
        transitions++;
    }

    void died() {
        deaths++;
    }

    /** Adds what a process has done in its life. */
    void add(EngineProcess process) {
        EngineStatistics statistics = process.statistics();
        TransferStatistics transfers = statistics.transfers();
        ofProcesses =
                ofProcesses.plus(
                        new Simulation.Coverage(
                                0,
                                0,
                                statistics.remotePromptTokens(),
                                process.spec().role() == Role.PREFILL
                                        ? statistics.remotePromptTokens()
                                        : 0,
                                statistics.remoteFirstTokens(),
                                transfers.handshakes(),
                                transfers.failedHandshakes(),
                                transfers.failedTransfers(),
                                transfers.expiredRequests(),
                                transfers.revokedRequests(),
                                transfers.revokedMappings(),
                                statistics.preemptions(),
                                statistics.prefixCacheHits(),
                                0,
                                0));
    }

    Simulation.Coverage coverage() {
        return ofProcesses.plus(
                new Simulation.Coverage(
                        answered, refused, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, transitions, deaths));
    }
}
