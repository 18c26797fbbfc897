package dev.dormouse.cli.demo;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.memory.MemoryUsage;

/** An engine of the demonstration: its process and its endpoint. */
final class EngineUnderTest {
    private static final double MIB = 1 << 20;

    private final ChildProcess process;
    private final Endpoint endpoint;

    EngineUnderTest(ChildProcess process, Endpoint endpoint) {
        this.process = process;
        this.endpoint = endpoint;
    }

    String name() {
        return process.name();
    }

    Endpoint endpoint() {
        return endpoint;
    }

    Counters counters() {
        return Counters.of(endpoint);
    }

    /** What the process holds now, as the system counts it. */
    double memoryMiB() {
        return MemoryUsage.ofProcess(process.pid()).pssBytes() / MIB;
    }

    void sleep(int level, String mode) {
        endpoint.post("/sleep?level=" + level + "&mode=" + mode);
        requireSleeping(true);
    }

    void wake() {
        endpoint.post("/wake_up");
        requireSleeping(false);
    }

    /** Wakes one tag, and checks what the engine says of itself afterwards. */
    void wake(String tag, boolean stillSleeping) {
        endpoint.post("/wake_up?tags=" + tag);
        requireSleeping(stillSleeping);
    }

    void releaseKvCache() {
        endpoint.post("/pause?mode=wait");
        endpoint.post("/release_kv_cache_memory");
        requireSleeping(true);
    }

    void wakeKvCacheAndResume() {
        wake("kv_cache", false);
        endpoint.post("/resume");
    }

    private void requireSleeping(boolean expected) {
        JsonNode answer = Json.parse(endpoint.get("/is_sleeping"));
        boolean sleeping = answer.path("is_sleeping").asBoolean();
        if (sleeping != expected) {
            throw new DemoFailure(
                    name() + " says is_sleeping=" + sleeping + ", expected " + expected);
        }
    }
}
