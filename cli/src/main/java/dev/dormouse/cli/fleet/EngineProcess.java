package dev.dormouse.cli.fleet;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.memory.MemoryUsage;

/** An engine of a fleet: its process and its endpoint. */
public final class EngineProcess {
    private static final double MIB = 1 << 20;

    private final ChildProcess process;
    private final Endpoint endpoint;
    private final Endpoint admin;

    /** The engine of a process, once that is ready. */
    public EngineProcess(ChildProcess process) {
        this.process = process;
        this.endpoint = new Endpoint(process.name(), process.awaitReady());
        this.admin = new Endpoint(process.name(), process.admin());
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

    /** Where it is put to sleep and woken. */
    public Endpoint admin() {
        return admin;
    }

    public Counters counters() {
        return Counters.of(endpoint);
    }

    /** What the process holds now, as the system counts it. */
    public double memoryMiB() {
        return MemoryUsage.ofProcess(process.pid()).pssBytes() / MIB;
    }

    /** The part of it in memory files, its own and other engines' that it maps. */
    public double fileMemoryMiB() {
        return MemoryUsage.ofProcess(process.pid()).pssShmemBytes() / MIB;
    }

    public void sleep(int level, String mode) {
        admin.post("/sleep?level=" + level + "&mode=" + mode);
        requireSleeping(true);
    }

    public void wake() {
        admin.post("/wake_up");
        requireSleeping(false);
    }

    /** Wakes one tag, and checks what the engine says of itself afterwards. */
    public void wake(String tag, boolean stillSleeping) {
        admin.post("/wake_up?tags=" + tag);
        requireSleeping(stillSleeping);
    }

    public void releaseKvCache() {
        admin.post("/pause?mode=wait");
        admin.post("/release_kv_cache_memory");
        requireSleeping(true);
    }

    public void wakeKvCacheAndResume() {
        wake("kv_cache", false);
        admin.post("/resume");
    }

    private void requireSleeping(boolean expected) {
        JsonNode answer = Json.parse(admin.get("/is_sleeping"));
        boolean sleeping = answer.path("is_sleeping").asBoolean();
        if (sleeping != expected) {
            throw new FleetException(
                    name() + " says is_sleeping=" + sleeping + ", expected " + expected);
        }
    }
}
