package dev.dormouse.cli.soak;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.function.BooleanSupplier;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;

/** Sends one request after the other, leaves some, and judges every answer. One thread's. */
final class Client implements Runnable {
    /**
     * No answer may take longer: a sleep lasts two seconds at most, a drain a lease of six, and a
     * request meets a few of either.
     */
    static final int ANSWER_LIMIT_MILLIS = 60_000;

    /** Errors that say that an engine sleeps, or that KV was lost by a sleep. */
    static final Set<String> OF_SLEEPS =
            Set.of(
                    "prefill_unavailable",
                    "decode_unavailable",
                    "decode_failed",
                    "kv_transfer_failed");

    private final String name;
    private final int routerPort;
    private final List<Question> questions;
    private final RandomGenerator random;
    private final Set<String> explicit;
    private final Tally tally;
    private final BooleanSupplier over;
    private @Nullable Wire wire;
    private int number;

    private Client(
            String name,
            int routerPort,
            List<Question> questions,
            RandomGenerator random,
            Set<String> explicit,
            Tally tally,
            BooleanSupplier over) {
        this.name = name;
        this.routerPort = routerPort;
        this.questions = questions;
        this.random = random;
        this.explicit = explicit;
        this.tally = tally;
        this.over = over;
    }

    /**
     * Starts {@code clients} of them.
     *
     * @param name what their requests' ids begin with
     * @param explicit the codes of errors that they may get
     * @param over tells them to end
     */
    static List<Thread> start(
            int clients,
            String name,
            int routerPort,
            List<Question> questions,
            SplittableRandom random,
            Set<String> explicit,
            Tally tally,
            BooleanSupplier over) {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < clients; i++) {
            String own = name + "-" + i;
            Client client =
                    new Client(own, routerPort, questions, random.split(), explicit, tally, over);
            threads.add(Thread.ofPlatform().name(own).daemon().start(client));
        }
        return threads;
    }

    /** Waits for the end of those that were told to end. */
    static void join(List<Thread> threads, Tally tally) throws InterruptedException {
        Duration limit = Duration.ofMillis(3L * ANSWER_LIMIT_MILLIS);
        for (Thread thread : threads) {
            if (!thread.join(limit)) {
                tally.fault(thread.getName() + " hangs");
            }
        }
    }

    @Override
    public void run() {
        while (!over.getAsBoolean()) {
            String id = name + "-" + number++;
            try {
                int what = random.nextInt(20);
                if (what < 4) {
                    leave(id);
                } else if (what < 6) {
                    misbehave(id);
                } else {
                    ask(id);
                }
            } catch (IOException | RuntimeException e) {
                tally.fault(id + ": " + e);
                hangUp();
            }
        }
        hangUp();
    }

    private Wire wire() throws IOException {
        Wire open = wire;
        if (open == null) {
            open = new Wire(routerPort, ANSWER_LIMIT_MILLIS);
            wire = open;
        }
        return open;
    }

    private void hangUp() {
        Wire open = wire;
        wire = null;
        if (open != null) {
            try {
                open.close();
            } catch (IOException e) {
                // It was closed from the other side.
            }
        }
    }

    private void ask(String id) throws IOException {
        Question question = questions.get(random.nextInt(questions.size()));
        boolean stream = random.nextBoolean();
        long start = System.nanoTime();
        Wire open = wire();
        open.send(Wire.post(question.path(), id, question.body(stream)));
        Wire.Answer answer = open.read();
        long nanos = System.nanoTime() - start;
        String kind = question.kind() + (stream ? " streamed" : "");
        tally.took(question.kind(), nanos);
        if (nanos > ANSWER_LIMIT_MILLIS * 1_000_000L) {
            tally.fault(id + " " + kind + " took " + nanos / 1_000_000 + " ms");
        }
        judge(id, kind, question, answer);
        if (answer.closes() || random.nextInt(8) == 0) {
            hangUp();
        }
    }

    private void judge(String id, String kind, Question question, Wire.Answer answer) {
        if (!id.equals(answer.headers().get("x-request-id"))) {
            tally.fault(id + " " + kind + " is not named in its answer: " + answer);
        }
        boolean events =
                answer.headers().getOrDefault("content-type", "").startsWith("text/event-stream");
        Reply reply = events ? Reply.streamed(answer.body()) : Reply.whole(answer.body());
        String error = reply.error();
        if (error != null) {
            if (!explicit.contains(error)) {
                tally.fault(id + " " + kind + ": " + answer.status() + " " + answer.body());
            }
            if (answer.body().contains("127.0.0.1")) {
                tally.fault(id + " is told an address: " + answer.body());
            }
            tally.count("answer " + kind + ": " + answer.status() + " " + error);
        } else if (answer.status() != 200) {
            tally.fault(id + " " + kind + ": " + answer.status() + " " + answer.body());
        } else {
            tally.count("answer " + kind + ": " + compare(id, question, reply));
        }
        if (error != null && !beginsRightly(question, reply)) {
            tally.fault(id + " " + kind + " began wrongly: " + reply);
        }
    }

    /** An ended text equals the oracle's; an aborted one is its beginning. */
    private String compare(String id, Question question, Reply reply) {
        if (reply.reasons().contains(null) || !beginsRightly(question, reply)) {
            tally.fault(id + " " + question.kind() + " " + reply + " is not " + question);
            return "wrong";
        }
        if (reply.reasons().contains("abort")) {
            for (int i = 0; i < reply.texts().size(); i++) {
                boolean whole = reply.texts().get(i).equals(question.texts().get(i));
                if (!whole && !"abort".equals(reply.reasons().get(i))) {
                    tally.fault(id + " " + question.kind() + " " + reply + " is not " + question);
                }
            }
            return "aborted";
        }
        if (!reply.texts().equals(question.texts())) {
            tally.fault(id + " " + question.kind() + " " + reply + " is not " + question);
            return "wrong";
        }
        return "right";
    }

    private static boolean beginsRightly(Question question, Reply reply) {
        List<String> texts = reply.texts();
        for (int i = 0; i < texts.size(); i++) {
            // The last piece of an aborted text may be half a character.
            String text = texts.get(i).replaceAll("\uFFFD+\\z", "");
            if (i >= question.texts().size() || !question.texts().get(i).startsWith(text)) {
                return false;
            }
        }
        return true;
    }

    /** A request that its client does not wait for, or does not even send to its end. */
    private void leave(String id) throws IOException {
        Question question = questions.get(random.nextInt(questions.size()));
        String request = Wire.post(question.path(), id, question.body(random.nextBoolean()));
        boolean half = random.nextInt(5) == 0;
        try (Wire own = new Wire(routerPort, ANSWER_LIMIT_MILLIS)) {
            own.send(half ? request.substring(0, random.nextInt(request.length())) : request);
            int millis = random.nextInt(random.nextInt(4) == 0 ? 2000 : 60);
            own.leaveAfter(millis, random.nextBoolean());
        }
        tally.count(half ? "left in its request" : "left in its answer");
    }

    private void misbehave(String id) throws IOException {
        BadRequest bad = BadRequest.ALL.get(random.nextInt(BadRequest.ALL.size()));
        long start = System.nanoTime();
        Wire open = wire();
        open.send(bad.bytes());
        Wire.Answer answer = open.read();
        tally.took("bad", System.nanoTime() - start);
        String error = Reply.whole(answer.body()).error();
        boolean engineIsGone = explicit.contains("prefill_unreachable") && explicit.contains(error);
        if (error == null || (answer.status() != bad.status() && !engineIsGone)) {
            tally.fault(id + ": " + bad + " is answered " + answer);
        }
        if (bad.closes() != answer.closes()) {
            tally.fault(id + ": " + bad + " leaves its connection open, or not: " + answer);
        }
        String rest = answer.closes() ? open.rest() : "";
        if (!rest.isEmpty()) {
            tally.fault(id + ": " + bad + " is answered " + answer + " and then " + rest);
        }
        tally.count("bad: " + answer.status() + " " + error);
        if (answer.closes()) {
            hangUp();
        }
    }
}
