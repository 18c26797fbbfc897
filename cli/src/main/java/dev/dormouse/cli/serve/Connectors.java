package dev.dormouse.cli.serve;

import dev.dormouse.connector.CompatibilityFactors;
import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.MultiConnector;
import dev.dormouse.connector.PullConnector;
import dev.dormouse.connector.PushConnector;
import dev.dormouse.connector.SchedulerConnector;
import dev.dormouse.connector.WorkerConnector;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.core.ConnectorHalves;
import dev.dormouse.engine.core.MemoryFiles;
import dev.dormouse.model.ModelConfig;
import dev.dormouse.transport.KvTransport;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Opens the connectors. */
final class Connectors {
    private static final Logger LOGGER = System.getLogger("dormouse.cli");

    /**
     * Test only: with the value {@code skip-reregister} an engine keeps its registration over a
     * sleep, which is the fault.
     */
    private static final String FAULT_VARIABLE = "DORMOUSE_FAULT";

    private static final String SKIP_REREGISTER = "skip-reregister";

    private Connectors() {}

    /**
     * Opens both halves, with an agent for each rank and connector.
     *
     * @param model over all ranks
     * @param files where peers' mappings come from
     */
    static ConnectorHalves open(
            KvSettings settings,
            ModelConfig model,
            int ranks,
            EngineConfig engine,
            MemoryFiles files) {
        settings.warnings()
                .forEach(
                        warning -> LOGGER.log(Level.WARNING, "--kv-transfer-config: {0}", warning));
        if (engine.sleepMode()) {
            @Nullable String refusal = settings.sleepRefusal();
            if (refusal != null) {
                throw new IllegalArgumentException(refusal);
            }
            Transports.sayWhatUcxIsTold(settings);
        }
        List<SchedulerConnector> schedulers = new ArrayList<>();
        List<List<WorkerConnector>> workers = new ArrayList<>();
        try {
            for (int rank = 0; rank < ranks; rank++) {
                workers.add(new ArrayList<>());
            }
            for (KvSettings each : settings.connectors()) {
                ConnectorConfig config = config(each, model, ranks, engine);
                Transports transports = new Transports(each, engine.sleepMode(), files);
                for (int rank = 0; rank < ranks; rank++) {
                    workers.get(rank).add(worker(each, config, rank, transports.open()));
                }
                schedulers.add(
                        each.isPush()
                                ? PushConnector.scheduler(config)
                                : PullConnector.scheduler(config));
            }
        } catch (RuntimeException e) {
            workers.forEach(ofRank -> ofRank.forEach(WorkerConnector::close));
            schedulers.forEach(SchedulerConnector::close);
            throw e;
        }
        return schedulers.size() == 1
                ? new ConnectorHalves(
                        schedulers.getFirst(), workers.stream().map(List::getFirst).toList())
                : new ConnectorHalves(
                        MultiConnector.scheduler(schedulers),
                        workers.stream()
                                .map(ofRank -> MultiConnector.worker(ofRank, System::nanoTime))
                                .toList());
    }

    private static WorkerConnector worker(
            KvSettings settings, ConnectorConfig config, int rank, KvTransport transport) {
        return settings.isPush()
                ? PushConnector.worker(config, rank, transport)
                : PullConnector.worker(config, rank, transport);
    }

    private static ConnectorConfig config(
            KvSettings settings, ModelConfig model, int ranks, EngineConfig engine) {
        CompatibilityFactors factors =
                CompatibilityFactors.of(
                        model.name(),
                        "torch." + engine.kvType().dtype(),
                        model.kvHeads(),
                        model.headDimension(),
                        model.layers());
        return settings.connector(factors, engine.blockTokens())
                .tpSize(ranks)
                .skipReregistration(isFaulty())
                .build();
    }

    private static boolean isFaulty() {
        boolean faulty = SKIP_REREGISTER.equals(System.getenv(FAULT_VARIABLE));
        if (faulty) {
            LOGGER.log(
                    Level.WARNING,
                    "{0}={1}: registrations outlive their pages, so that tests can see what goes wrong then",
                    FAULT_VARIABLE,
                    SKIP_REREGISTER);
        }
        return faulty;
    }
}
