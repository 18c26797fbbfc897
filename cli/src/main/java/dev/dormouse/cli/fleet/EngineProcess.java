package dev.dormouse.cli.fleet;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.memory.MemoryUsage;

/** An engine of a fleet: its process and its endpoint. */
public final class EngineProcess {
    private static final double MIB = 1 << 20;

    private final ChildProcess process;
    private final Endpoint endpoint;

    public EngineProcess(ChildProcess process, Endpoint endpoint) {
        this.process = process;
        this.endpoint = endpoint;
    }

    public String name() {
        return process.name();
    }

    public long pid() {
        return process.pid();
    }

    public Endpoint endpoint() {
        return endpoint;
    }

    public Counters counters() {
        return Counters.of(endpoint);
    }

    /** What the process holds now, as the system counts it. */
    public double memoryMiB() {
        return MemoryUsage.ofProcess(process.pid()).pssBytes() / MIB;
    }

    public void sleep(int level, String mode) {
        endpoint.post("/sleep?level=" + level + "&mode=" + mode);
        requireSleeping(true);
    }

    public void wake() {
        endpoint.post("/wake_up");
        requireSleeping(false);
    }

    /** Wakes one tag, and checks what the engine says of itself afterwards. */
    public void wake(String tag, boolean stillSleeping) {
        endpoint.post("/wake_up?tags=" + tag);
        requireSleeping(stillSleeping);
    }

    public void releaseKvCache() {
        endpoint.post("/pause?mode=wait");
        endpoint.post("/release_kv_cache_memory");
        requireSleeping(true);
    }

    public void wakeKvCacheAndResume() {
        wake("kv_cache", false);
        endpoint.post("/resume");
    }

    private void requireSleeping(boolean expected) {
        JsonNode answer = Json.parse(endpoint.get("/is_sleeping"));
        boolean sleeping = answer.path("is_sleeping").asBoolean();
        if (sleeping != expected) {
            throw new FleetException(
                    name() + " says is_sleeping=" + sleeping + ", expected " + expected);
        }
    }
}
