package dev.dormouse.transport.nixl;

/** Something that engines do in the guest, and what must come of it. */
interface RdmaScenario {
    /** Runs it; whatever goes wrong on the way may be thrown. */
    void run(RdmaEngines engines, RdmaChecks checks);
}
