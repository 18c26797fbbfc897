package dev.dormouse.cli.bench.costs;

import com.fasterxml.jackson.databind.JsonNode;
import dev.dormouse.cli.bench.serve.Answer;
import dev.dormouse.cli.bench.serve.BenchFleet;
import dev.dormouse.cli.bench.serve.LoadClient;
import dev.dormouse.cli.bench.serve.Prompts;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Progress;
import java.util.List;

/**
 * What every part works with.
 *
 * @param setting how engines are started
 * @param amounts how much is measured
 * @param progress told what is done
 */
record Bench(BenchFleet.Setting setting, Part.Amounts amounts, Progress progress) {
    static final double NANOS_PER_MILLI = 1e6;

    /** Tokens of a prompt whose computation hides little. */
    static final int SHORT_PROMPT = 32;

    /** Tokens of an answer that is wanted for its first one. */
    static final int SHORT_ANSWER = 2;

    /** An answer without which nothing can be said. */
    static Answer.Served ask(LoadClient client, JsonNode prompt, int tokens) {
        return require(client.complete(prompt, tokens));
    }

    /** Makes the code of engines and router warm with short requests, one after the other. */
    void warmUp(LoadClient client, Prompts prompts) {
        for (JsonNode prompt : prompts.next(amounts.warmUps(), SHORT_PROMPT)) {
            var _ = ask(client, prompt, SHORT_ANSWER);
        }
    }

    /** A load of which every request must be answered. */
    static LoadClient.Load load(
            LoadClient client, List<JsonNode> prompts, int tokens, int concurrency) {
        LoadClient.Load load = client.run(prompts, tokens, concurrency);
        for (Answer answer : load.answers()) {
            var _ = require(answer);
        }
        return load;
    }

    private static Answer.Served require(Answer answer) {
        return switch (answer) {
            case Answer.Served served -> served;
            case Answer.Failed(String reason) ->
                    throw new FleetException("a request failed: " + reason);
        };
    }

    /** Processor time of a process so far, in seconds; the system counts hundredths. */
    static double processorSeconds(long pid) {
        return ProcessHandle.of(pid)
                        .flatMap(process -> process.info().totalCpuDuration())
                        .orElseThrow(() -> new FleetException("process " + pid + " is gone"))
                        .toNanos()
                / 1e9;
    }
}
