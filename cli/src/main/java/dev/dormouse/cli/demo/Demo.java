package dev.dormouse.cli.demo;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.cli.fleet.Counters;
import dev.dormouse.cli.fleet.Endpoint;
import dev.dormouse.cli.fleet.EngineProcess;
import dev.dormouse.cli.fleet.Fleet;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.cli.fleet.Progress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The demonstration from start to end. */
final class Demo {
    private static final int MOST_CLIENTS = 8;
    private static final int LOAD_ROUNDS = 2;

    /** More than prompts differ in length. */
    private static final int COVERING_CHARACTERS = 200;

    private final DemoOptions options;
    private final Progress progress;
    private final Path logs;

    Demo(DemoOptions options, Progress progress, Path logs) {
        this.options = options;
        this.progress = progress;
        this.logs = logs;
    }

    Report run() {
        List<String> prompts = DemoPrompts.first(options.prompts());
        progress.say(
                "starting prefill engine, decode engine and router, and an engine that never sleeps");
        try (ChildProcess alone = Fleet.startOracle(options.model(), options.kvCacheMiB(), logs);
                Fleet fleet = Fleet.start(options.fleet(), logs)) {
            Endpoint engine = new Endpoint("oracle", alone.awaitReady());
            String model =
                    Json.parse(engine.get("/v1/models")).path("data").path(0).path("id").asText();
            progress.say(
                    "asking the engine that never sleeps "
                            + prompts.size()
                            + " prompts of "
                            + model);
            Oracle oracle = Oracle.ask(engine, prompts, options.tokens());
            alone.close();
            return run(fleet, oracle, model);
        }
    }

    private Report run(Fleet fleet, Oracle oracle, String model) {
        List<CaseResult> cases = new ArrayList<>();
        CaseResult awake = awake(fleet, oracle);
        if (!options.revokes()) {
            CaseResult fault = unrevoked(fleet, oracle, awake.controlMillis());
            return new FaultReport(
                    model,
                    options.transport().toString(),
                    options.kvCacheMiB(),
                    List.of(awake, fault));
        }
        cases.add(awake);
        DemoReport.Blindness blindness = blindness(fleet, oracle);
        cases.addAll(new SleepCases(fleet, oracle, options, progress, awake.controlMillis()).run());
        cases.add(underLoad(fleet, oracle, awake.controlMillis()));
        return new DemoReport(model, options.transport().toString(), blindness, cases);
    }

    /**
     * One sleep of the prefill engine. Afterwards the prompts come in another order, so that none
     * meets its own KV where the engine had it before.
     */
    private CaseResult unrevoked(Fleet fleet, Oracle oracle, double controlMillis) {
        List<EngineProcess> sleepers = List.of(fleet.prefill());
        return new SleepCase(
                        "sleep-prefill",
                        fleet,
                        oracle.rotated(),
                        sleepers,
                        options.kvCacheMiB(),
                        controlMillis)
                .run(1, SleepCases.plain(sleepers, 1), progress);
    }

    /**
     * The control: both engines awake. The first prompt meets an unknown peer, so one handshake of
     * each rank is right.
     */
    private CaseResult awake(Fleet fleet, Oracle oracle) {
        progress.say("awake: every prompt through prefill, transfer and decode");
        Counters before = fleet.decode().counters();
        Oracle.Check check = oracle.check(fleet.router());
        Counters decode = fleet.decode().counters().minus(before);
        int checked = oracle.prompts().size();
        Judgement judgement = new Judgement();
        judgement.outputs(checked, check.equal());
        judgement.transfers(decode, fleet.prefill().counters(), checked * fleet.readsPerPrompt());
        judgement.handshakes(decode.handshakes(), fleet.decodeRanks());
        return new CaseResult(
                "awake",
                0,
                checked,
                check.equal(),
                0,
                0,
                0,
                decode.failedTransfers(),
                decode.reads(),
                decode.computedPromptTokens(),
                decode.handshakes() / (double) fleet.decodeRanks(),
                check.millis().getFirst(),
                check.medianMillis(),
                judgement.complaints());
    }

    /** Decodes each prompt from the KV of another one; the outputs must be able to show it. */
    private DemoReport.Blindness blindness(Fleet fleet, Oracle oracle) {
        progress.say("blindness check: reading another prompt's KV on purpose");
        List<String> prompts = oracle.prompts();
        int equal = 0;
        for (int i = 0; i < prompts.size(); i++) {
            JsonNode other =
                    withoutLength(fleet.prefill().endpoint().prefill(longerThan(prompts, i)));
            List<Integer> tokens =
                    fleet.decode()
                            .endpoint()
                            .complete(prompts.get(i), oracle.tokens(), other)
                            .tokens();
            equal += tokens.equals(oracle.answers().get(i)) ? 1 : 0;
        }
        return new DemoReport.Blindness(prompts.size(), equal);
    }

    /** A reader that knew the other prompt's length would refuse to read it. */
    private static JsonNode withoutLength(JsonNode handedOver) {
        ObjectNode concealed = handedOver.deepCopy();
        concealed.remove(
                List.of("remote_num_tokens", "remote_prompt_tokens", "remote_prompt_hash"));
        return concealed;
    }

    /**
     * The next prompt and the first words of the one after it, so that its blocks cover any other
     * prompt's.
     */
    private static String longerThan(List<String> prompts, int index) {
        int count = prompts.size();
        String more = prompts.get((index + 2) % count).substring(0, COVERING_CHARACTERS);
        return prompts.get((index + 1) % count) + "\n\n" + more;
    }

    /**
     * The prefill engine falls asleep while requests keep coming, and is woken some seconds later.
     */
    private CaseResult underLoad(Fleet fleet, Oracle oracle, double controlMillis) {
        progress.say("sleep-under-load: requests go on while the prefill engine sleeps");
        EngineProcess prefill = fleet.prefill();
        int requests = oracle.prompts().size() * LOAD_ROUNDS;
        // Fewer than requests, so that some come while the engine sleeps.
        int clients = Math.min(MOST_CLIENTS, requests / 2);
        Judgement underLoad = new Judgement();
        try (Load load = new Load(fleet.router(), oracle, requests, clients)) {
            CaseResult after =
                    new SleepCase(
                                    "sleep-under-load",
                                    fleet,
                                    oracle,
                                    List.of(prefill),
                                    options.kvCacheMiB(),
                                    controlMillis)
                            .withBackground(requests)
                            .run(1, underLoad(prefill, load, requests, underLoad), progress);
            return after.plus(requests, load.await().equal(), underLoad.complaints());
        }
    }

    private SleepCase.Cycle underLoad(
            EngineProcess prefill, Load load, int requests, Judgement judgement) {
        return new SleepCase.Cycle() {
            @Override
            public void sleep() {
                load.start();
                prefill.sleep(1, "wait");
            }

            @Override
            public void wake() {
                pause();
                prefill.wake();
            }

            @Override
            public void settle() {
                Load.Outcome outcome = load.await();
                judgement.errors(outcome.failed(), requests);
                judgement.outputs(requests - outcome.failed(), outcome.equal());
            }
        };
    }

    private void pause() {
        try {
            TimeUnit.SECONDS.sleep(options.asleepSeconds());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new FleetException("interrupted", e);
        }
    }
}
