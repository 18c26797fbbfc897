package dev.dormouse.transport.nixl;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.dormouse.connector.CompatibilityFactors;
import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.ConnectorRequest;
import dev.dormouse.connector.FinishKind;
import dev.dormouse.connector.HandOver;
import dev.dormouse.connector.KvTransferParams;
import dev.dormouse.connector.PullConnector;
import dev.dormouse.connector.PushConnector;
import dev.dormouse.connector.SchedulerConnector;
import dev.dormouse.connector.TransferStatistics;
import dev.dormouse.connector.WorkerConnector;
import dev.dormouse.connector.WorkerReport;
import dev.dormouse.testkit.ChildJvm;
import dev.dormouse.testkit.ParentLink;
import dev.dormouse.transport.KvTransport;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A process that does to the real connector, over NIXL and a real side channel, what an engine
 * does, without an engine: it hands prompts over, reads them, compares every byte, sleeps in the
 * engine's order, and wakes.
 */
final class EngineNode {
    private static final int PROMPT_BLOCKS = 8;
    private static final int PROMPT_TOKENS = PROMPT_BLOCKS * KvBlocks.BLOCK_TOKENS;
    private static final Duration SLEEP_LIMIT = Duration.ofSeconds(30L * ChildJvm.PATIENCE);
    private static final Duration HANDSHAKE_LIMIT = Duration.ofSeconds(5L * ChildJvm.PATIENCE);

    /** Between rounds; an emulated processor would spend all its time on them. */
    private static final long IDLE_NANOS = Long.getLong("dormouse.test.idle.nanos", 100_000);

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final KvTransferParams FOR_OTHERS = params("{\"do_remote_decode\": true}");

    /** What became of a read. */
    private enum Outcome {
        /** It counts as done, and every byte is right. */
        GOOD,
        /** It counts as done, and a byte is wrong. */
        WRONG,
        /** It has failed, and its blocks are free. */
        FAILED,
        /** It has failed, and its blocks wait for a transfer that may still write them. */
        QUARANTINED
    }

    /** A prompt that is read. */
    private record Reading(ConnectorRequest request, long seed) {}

    private final KvBlocks kv;
    private final SchedulerConnector scheduler;
    private final WorkerConnector worker;

    /** Of requests that are held, and of those that are read. */
    private final Map<String, int[]> blocks = new HashMap<>();

    private final Map<String, Reading> readings = new LinkedHashMap<>();
    private final Map<String, Outcome> outcomes = new HashMap<>();
    private final ParentLink parent;
    private TransferStatistics statistics = TransferStatistics.NONE;
    private int lastReading;

    /** The prompt whose bytes the last wrong read brought, or -1. */
    private int lastContent = -1;

    private @Nullable Runnable atNextRead;

    private EngineNode(ConnectorConfig config, boolean overwrites, ParentLink parent) {
        this.parent = parent;
        kv = new KvBlocks(overwrites);
        kv.wakeWeights();
        kv.wake();
        KvTransport transport =
                watched(
                        NixlTransport.open(
                                "UCX", UcxSleepDefaults.applied(Map.of(), System.getenv())));
        boolean pushes = config.factors().transferMode().equals("push");
        scheduler = pushes ? PushConnector.scheduler(config) : PullConnector.scheduler(config);
        worker =
                pushes
                        ? PushConnector.worker(config, 0, transport)
                        : PullConnector.worker(config, 0, transport);
        worker.registerKvCaches(kv.regions());
        scheduler.publish(List.of(worker.payload()));
    }

    /**
     * Takes engine id, side-channel port, seconds of a lease and of a read's time limit, {@code
     * push} or {@code pull}, and what else is wanted: {@code faulty} keeps the registration over a
     * sleep, {@code keep-content} leaves blocks as they are when they are given back.
     */
    public static void main(String[] args) {
        ParentLink parent = ParentLink.open();
        Set<String> wanted = Arrays.stream(args).skip(5).collect(Collectors.toSet());
        CompatibilityFactors factors =
                CompatibilityFactors.of("model", "torch.bfloat16", 2, 16, KvBlocks.LAYERS);
        ConnectorConfig config =
                ConnectorConfig.builder(
                                args[4].equals("push") ? factors.pushed() : factors,
                                KvBlocks.BLOCK_TOKENS)
                        .engineId(args[0])
                        .bindHost("127.0.0.1")
                        .sideChannelPort(Integer.parseInt(args[1]))
                        .leaseDuration(Duration.ofSeconds(Long.parseLong(args[2])))
                        .readTimeout(Duration.ofSeconds(Long.parseLong(args[3])))
                        .handshakeTimeout(HANDSHAKE_LIMIT)
                        .skipReregistration(wanted.contains("faulty"))
                        .build();
        EngineNode node = new EngineNode(config, !wanted.contains("keep-content"), parent);
        while (!parent.isEnded()) {
            String line = parent.poll();
            if (line == null) {
                node.step();
                LockSupport.parkNanos(IDLE_NANOS);
            } else {
                parent.answer(node.answer(line.split(" ", 3)));
            }
        }
        node.close();
    }

    private String answer(String[] words) {
        return switch (words[0]) {
            case "port" -> Integer.toString(scheduler.sideChannelPort());
            case "prefill" -> prefill(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            case "decode" -> decode(Integer.parseInt(words[1]), words[2]);
            case "begin" -> begin(Integer.parseInt(words[1]), words[2]);
            case "steps" -> steps(Integer.parseInt(words[1]));
            case "untouched" -> Boolean.toString(kv.unusedIsUntouched());
            case "await" -> await(Outcome.QUARANTINED);
            case "settle" -> await(Outcome.FAILED);
            case "sleep" -> {
                scheduler.withdraw();
                yield sleep();
            }
            case "revoke" -> {
                scheduler.revoke();
                yield sleep();
            }
            case "wake" -> {
                kv.wakeWeights();
                wakeKv();
                yield "awake";
            }
            case "wake-kv-first" -> {
                wakeKv();
                kv.wakeWeights();
                yield "awake";
            }
            case "content" -> Integer.toString(lastContent);
            case "handshakes" -> Long.toString(statistics.handshakes());
            case "free" -> Integer.toString(kv.free());
            case "counts" -> ProcessCounts.ofThisProcess().toString();
            default -> throw new IllegalArgumentException("unknown command " + words[0]);
        };
    }

    private void wakeKv() {
        kv.wake();
        worker.restoreKvCaches();
        scheduler.publish(List.of(worker.payload()));
    }

    private String steps(int count) {
        for (int i = 0; i < count; i++) {
            step();
            LockSupport.parkNanos(IDLE_NANOS);
        }
        return "done";
    }

    /** One round of the engine's loop. */
    private void step() {
        worker.start(scheduler.step());
        WorkerReport report = worker.poll();
        scheduler.onReport(report);
        statistics = statistics.plus(report.statistics());
        report.finishedSending().forEach(id -> kv.release(taken(id)));
        report.abandonedReceiving().forEach(id -> outcomes.put(id, Outcome.QUARANTINED));
        for (String id : report.finishedReceiving()) {
            Reading reading = Objects.requireNonNull(readings.get(id));
            int[] target = taken(id);
            outcomes.put(id, outcome(report.failedReceiving().contains(id), target, reading));
            var _ = scheduler.onFinished(reading.request, FinishKind.LENGTH, target, PROMPT_TOKENS);
            kv.release(target);
        }
    }

    private Outcome outcome(boolean failed, int[] target, Reading reading) {
        if (failed) {
            return Outcome.FAILED;
        }
        if (kv.hold(target, reading.seed)) {
            return Outcome.GOOD;
        }
        lastContent =
                IntStream.range(0, (int) reading.seed)
                        .filter(seed -> kv.hold(target, seed))
                        .findFirst()
                        .orElse(-1);
        return Outcome.WRONG;
    }

    private int[] taken(String requestId) {
        return Objects.requireNonNull(blocks.remove(requestId));
    }

    /**
     * Hands prompts over whose seeds are {@code first} and those after it; tells where they are.
     */
    private String prefill(int first, int count) {
        ArrayNode handOvers = JSON.createArrayNode();
        for (int seed = first; seed < first + count; seed++) {
            ConnectorRequest request =
                    new ConnectorRequest("prefill-" + seed, PROMPT_TOKENS, FOR_OTHERS);
            int[] allocated = kv.allocate(PROMPT_BLOCKS);
            scheduler.onArrival(request);
            scheduler.onAllocated(request, allocated, 0, 0);
            kv.fill(allocated, seed);
            HandOver handOver =
                    scheduler.onFinished(request, FinishKind.LENGTH, allocated, PROMPT_TOKENS);
            blocks.put(request.id(), allocated);
            handOvers.add(Objects.requireNonNull(handOver.params()).toJson());
        }
        return handOvers.toString();
    }

    /** Reads what another node's {@link #prefill} with the same {@code first} told. */
    private String decode(int first, String handOvers) {
        int seed = first;
        for (JsonNode json : parse(handOvers)) {
            ConnectorRequest request =
                    new ConnectorRequest(
                            "decode-" + ++lastReading, PROMPT_TOKENS, KvTransferParams.of(json));
            int[] allocated = kv.allocate(PROMPT_BLOCKS);
            blocks.put(request.id(), allocated);
            readings.put(request.id(), new Reading(request, seed++));
            scheduler.onArrival(request);
            int external = scheduler.externalTokens(request, 0);
            scheduler.onAllocated(request, allocated, 0, external);
        }
        return "ordered";
    }

    /** As {@link #decode}; the first read is about to be posted, and waits for a word. */
    private String begin(int first, String handOvers) {
        String ordered = decode(first, handOvers);
        atNextRead =
                () -> {
                    parent.answer(ordered);
                    while (parent.poll() == null) {
                        LockSupport.parkNanos(IDLE_NANOS);
                    }
                };
        long startNanos = System.nanoTime();
        while (atNextRead != null) {
            if (System.nanoTime() - startNanos > SLEEP_LIMIT.toNanos()) {
                throw new IllegalStateException("no read has begun");
            }
            step();
        }
        return "going on";
    }

    /** The transport, which tells of a read before it is posted. */
    private KvTransport watched(KvTransport transport) {
        return (KvTransport)
                Proxy.newProxyInstance(
                        KvTransport.class.getClassLoader(),
                        new Class<?>[] {KvTransport.class},
                        (_, method, arguments) -> {
                            Runnable action = atNextRead;
                            if (action != null && method.getName().equals("read")) {
                                action.run();
                                atNextRead = null;
                            }
                            try {
                                return method.invoke(transport, arguments);
                            } catch (InvocationTargetException e) {
                                throw e.getCause();
                            }
                        });
    }

    /**
     * Waits until every read is as far as {@code worst} at least, and counts what became of them
     * since the last time that all had ended.
     */
    private String await(Outcome worst) {
        while (!readings.keySet().stream().allMatch(id -> hasReached(id, worst))) {
            step();
            LockSupport.parkNanos(IDLE_NANOS);
        }
        Map<Outcome, Integer> counts = new EnumMap<>(Outcome.class);
        outcomes.values().forEach(outcome -> counts.merge(outcome, 1, Integer::sum));
        if (!counts.containsKey(Outcome.QUARANTINED)) {
            outcomes.clear();
            readings.clear();
        }
        return counts.toString();
    }

    private boolean hasReached(String id, Outcome worst) {
        @Nullable Outcome outcome = outcomes.get(id);
        return outcome != null && outcome.compareTo(worst) <= 0;
    }

    /** In the engine's order: no memory goes while a reader may still count on it. */
    private String sleep() {
        scheduler.drain(true);
        long startNanos = System.nanoTime();
        while (scheduler.heldRequests() > 0) {
            if (System.nanoTime() - startNanos > SLEEP_LIMIT.toNanos()) {
                throw new IllegalStateException("still held: " + blocks.keySet());
            }
            step();
            LockSupport.parkNanos(IDLE_NANOS);
        }
        worker.prepareRelease(SLEEP_LIMIT);
        worker.releaseKvCaches(SLEEP_LIMIT);
        step();
        scheduler.drain(false);
        kv.sleep();
        return "asleep";
    }

    private void close() {
        scheduler.close();
        worker.close();
        kv.close();
    }

    private static KvTransferParams params(String json) {
        return KvTransferParams.of(parse(json));
    }

    private static JsonNode parse(String json) {
        try {
            return JSON.readTree(json);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }
}
