package dev.dormouse.cli.soak;

import dev.dormouse.cli.fleet.EngineProcess;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.random.RandomGenerator;

/** Puts one engine to sleep and wakes it, in every way, again and again. One thread's. */
final class Operator implements Runnable {
    private static final int ANSWER_LIMIT_MILLIS = 60_000;
    private static final int LONGEST_SLEEP_MILLIS = 1000;
    private static final int LONGEST_AWAKE_MILLIS = 3000;

    private final EngineProcess engine;
    private final RandomGenerator random;
    private final Tally tally;
    private final BooleanSupplier over;

    Operator(EngineProcess engine, RandomGenerator random, Tally tally, BooleanSupplier over) {
        this.engine = engine;
        this.random = random;
        this.tally = tally;
        this.over = over;
    }

    @Override
    public void run() {
        try {
            while (!over.getAsBoolean()) {
                pause(LONGEST_AWAKE_MILLIS);
                switch (random.nextInt(5)) {
                    case 0 -> pauseAndResume();
                    case 1 -> releaseKvCache();
                    default -> sleepAndWake();
                }
            }
        } catch (IOException | RuntimeException e) {
            tally.fault(engine.name() + ": " + e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void sleepAndWake() throws IOException, InterruptedException {
        int level = random.nextInt(3);
        String sleep = "/sleep?level=" + level + "&mode=" + mode();
        if (random.nextInt(8) == 0) {
            cancelled(sleep);
            return;
        }
        must(sleep);
        pause(LONGEST_SLEEP_MILLIS);
        if (random.nextInt(4) == 0) {
            must("/sleep?level=" + random.nextInt(level, 3) + "&mode=" + mode());
        }
        must("/is_sleeping", "\"is_sleeping\":true");
        if (random.nextBoolean()) {
            List<String> tags = new ArrayList<>(List.of("weights", "kv_cache", "scheduling"));
            while (!tags.isEmpty()) {
                String tag = tags.remove(random.nextInt(tags.size()));
                // Scheduling resumes with the last tag, so it may be back by then.
                must("/wake_up?tags=" + tag);
                pause(LONGEST_SLEEP_MILLIS / 4);
            }
        }
        must("/wake_up");
        must("/is_sleeping", "\"is_sleeping\":false");
    }

    /** A drain that is given up by {@code /resume}, unless it is over by then. */
    private void cancelled(String sleep) throws IOException, InterruptedException {
        Thread resume =
                Thread.ofVirtual()
                        .start(
                                () -> {
                                    try {
                                        pause(30);
                                        var _ = post("/resume");
                                    } catch (IOException | InterruptedException e) {
                                        tally.fault(engine.name() + " /resume: " + e);
                                    }
                                });
        Wire.Answer answer = post(sleep);
        resume.join();
        if (answer.status() != 200 && answer.status() != 409) {
            tally.fault(engine.name() + " " + sleep + " beside /resume: " + answer);
        }
        tally.count("transition /sleep beside /resume: " + answer.status());
        must("/wake_up");
        must("/is_sleeping", "\"is_sleeping\":false");
    }

    private void pauseAndResume() throws IOException, InterruptedException {
        must("/pause?mode=" + mode() + "&clear_cache=" + random.nextBoolean());
        must("/is_paused", "\"is_paused\":true");
        pause(LONGEST_SLEEP_MILLIS);
        must("/resume");
        must("/is_paused", "\"is_paused\":false");
    }

    private void releaseKvCache() throws IOException, InterruptedException {
        must("/pause?mode=" + (random.nextBoolean() ? "wait" : "abort"));
        Wire.Answer released = post("/release_kv_cache_memory");
        // Requests that came meanwhile wait, if the engine holds them.
        if (released.status() != 200 && released.status() != 409) {
            tally.fault(engine.name() + " /release_kv_cache_memory: " + released);
        }
        tally.count("transition /release_kv_cache_memory: " + released.status());
        pause(LONGEST_SLEEP_MILLIS);
        must("/wake_up?tags=kv_cache");
        must("/resume");
        must("/is_sleeping", "\"is_sleeping\":false");
    }

    private String mode() {
        return switch (random.nextInt(3)) {
            case 0 -> "abort";
            case 1 -> "wait";
            default -> "keep";
        };
    }

    private void must(String path) throws IOException {
        Wire.Answer answer = post(path);
        if (answer.status() != 200) {
            tally.fault(engine.name() + " " + path + ": " + answer);
        }
        tally.count("transition " + path.replaceFirst("\\?.*", "") + ": " + answer.status());
    }

    private void must(String path, String says) throws IOException {
        String answer = Wire.get(engine.admin().base().getPort(), path);
        if (!answer.contains(says)) {
            tally.fault(engine.name() + " " + path + ": " + answer + ", not " + says);
        }
    }

    private Wire.Answer post(String path) throws IOException {
        long start = System.nanoTime();
        try (Wire wire = new Wire(engine.admin().base().getPort(), ANSWER_LIMIT_MILLIS)) {
            wire.send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
            return wire.read();
        } finally {
            tally.took(engine.name() + path.replaceFirst("\\?.*", ""), System.nanoTime() - start);
        }
    }

    private void pause(int longestMillis) throws InterruptedException {
        TimeUnit.MILLISECONDS.sleep(random.nextInt(longestMillis));
    }
}
