package dev.dormouse.cli.serve;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.dormouse.connector.CompatibilityFactors;
import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.ConnectorException;
import dev.dormouse.connector.PullConnector;
import dev.dormouse.connector.ReleaseTimeoutException;
import dev.dormouse.connector.SchedulerConnector;
import dev.dormouse.connector.WorkerConnector;
import dev.dormouse.engine.Engine;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.core.ConnectorHalves;
import dev.dormouse.engine.core.Engines;
import dev.dormouse.engine.core.MemoryFiles;
import dev.dormouse.engine.core.RankMemory;
import dev.dormouse.model.KvType;
import dev.dormouse.model.LanguageModel;
import dev.dormouse.model.ModelException;
import dev.dormouse.model.ModelFiles;
import dev.dormouse.model.tokenizer.Tokenizer;
import dev.dormouse.server.AdminConfig;
import dev.dormouse.server.EngineServer;
import dev.dormouse.server.ModelText;
import dev.dormouse.server.ServedLegs;
import dev.dormouse.server.ServerConfig;
import dev.dormouse.transport.nixl.NixlTransport;
import dev.dormouse.transport.nixl.UcxSleepDefaults;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * An engine as {@code dormouse serve} puts it together, with its HTTP server, its memory of the
 * machine and an agent of the real NIXL for each rank, but over a tiny model, and with parts that
 * fail where the test says.
 */
final class FaultyEngine implements AutoCloseable {
    private static final Duration LEASE = Duration.ofSeconds(20);

    private static final int BLOCK_TOKENS = 16;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    final Faults faults = new Faults();
    final List<FaultyTransport> transports = new ArrayList<>();
    final List<FaultyMemory> memories = new ArrayList<>();
    private final ModelFiles files;
    private final Engine engine;
    private final EngineServer server;

    /** An answer, also an error's. */
    record Answer(int status, JsonNode body) {}

    FaultyEngine(Path folder, String id, int ranks, boolean prefixCaching) {
        files = ModelFiles.open(folder);
        Tokenizer tokenizer = files.tokenizer();
        EngineConfig config =
                new EngineConfig(
                        "tiny",
                        1 << 20,
                        BLOCK_TOKENS,
                        KvType.F16,
                        256,
                        4,
                        64,
                        100,
                        prefixCaching,
                        true,
                        false,
                        false,
                        true);
        ConnectorHalves connector = connector(id, ranks);
        engine =
                Engines.start(
                        config,
                        faults.in(
                                LanguageModel.class,
                                files.openModel(1, ranks),
                                (name, arguments) ->
                                        name.equals("loadWeights") ? "load " + arguments[0] : name,
                                ModelException::new),
                        () -> tokenizer,
                        () -> connector,
                        surroundings(config));
        server =
                EngineServer.start(
                        new ServerConfig(
                                "127.0.0.1",
                                0,
                                1 << 20,
                                100,
                                ServedLegs.BOTH,
                                false,
                                new AdminConfig("127.0.0.1", 0, null, false),
                                List.of(),
                                "1"),
                        engine,
                        new ModelText(tokenizer, files.chatTemplate(tokenizer)),
                        Clock.systemUTC(),
                        System::nanoTime);
    }

    private Engines.Surroundings surroundings(EngineConfig config) {
        Engines.Surroundings machine = Engines.Surroundings.ofMachine(config, new MemoryFiles());
        RankMemory.Source memory =
                (rank, bytes) -> {
                    FaultyMemory faulty =
                            new FaultyMemory(machine.memory().reserve(rank, bytes), faults, rank);
                    memories.add(faulty);
                    return faulty;
                };
        return new Engines.Surroundings(
                machine.nanoClock(),
                memory,
                new SplittableRandom(1),
                () -> faults.enter("trim", IllegalStateException::new));
    }

    private ConnectorHalves connector(String id, int ranks) {
        ConnectorConfig config =
                ConnectorConfig.builder(
                                CompatibilityFactors.of(
                                        "tiny",
                                        "torch.float16",
                                        TinyModelFolder.KV_HEADS,
                                        TinyModelFolder.HEAD,
                                        TinyModelFolder.LAYERS),
                                BLOCK_TOKENS)
                        .engineId(id)
                        .bindHost("127.0.0.1")
                        .sideChannelPort(0)
                        .leaseDuration(LEASE)
                        .tpSize(ranks)
                        .build();
        List<WorkerConnector> workers = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            FaultyTransport transport =
                    new FaultyTransport(
                            NixlTransport.open(
                                    "UCX", UcxSleepDefaults.applied(Map.of(), System.getenv())),
                            faults,
                            rank);
            transports.add(transport);
            String prepare = "prepare release " + rank;
            workers.add(
                    faults.in(
                            WorkerConnector.class,
                            PullConnector.worker(config, rank, transport),
                            (name, _) -> name.equals("prepareRelease") ? prepare : null,
                            ReleaseTimeoutException::new));
        }
        return new ConnectorHalves(
                faults.in(
                        SchedulerConnector.class,
                        PullConnector.scheduler(config),
                        (name, arguments) ->
                                name.equals("drain") ? name + " " + arguments[0] : name,
                        ConnectorException::new),
                workers);
    }

    /** Posts to the public listener. */
    Answer post(String path, JsonNode body) {
        return send(
                server.port(), path, HttpRequest.BodyPublishers.ofString(body.toString()), "POST");
    }

    /** Posts to the admin listener. */
    Answer control(String path) {
        return send(server.adminPort(), path, HttpRequest.BodyPublishers.noBody(), "POST");
    }

    Answer get(String path) {
        return send(server.port(), path, HttpRequest.BodyPublishers.noBody(), "GET");
    }

    /** The sum of a series over those of its samples that have the label. */
    double metric(String name, String label) {
        return text(server.port(), "/metrics", HttpRequest.BodyPublishers.noBody(), "GET")
                .body()
                .lines()
                .filter(line -> line.startsWith(name + "{") && line.contains(label))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
                .sum();
    }

    private static Answer send(
            int port, String path, HttpRequest.BodyPublisher body, String method) {
        HttpResponse<String> response = text(port, path, body, method);
        try {
            return new Answer(response.statusCode(), JSON.readTree(response.body()));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static HttpResponse<String> text(
            int port, String path, HttpRequest.BodyPublisher body, String method) {
        HttpRequest request =
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                        .header("Content-Type", "application/json")
                        .timeout(Duration.ofMinutes(1))
                        .method(method, body)
                        .build();
        try {
            return HTTP.send(request, HttpResponse.BodyHandlers.ofString());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }

    @Override
    public void close() {
        faults.heal();
        try (files;
                server) {
            engine.close();
        }
    }
}
