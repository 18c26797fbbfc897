package dev.dormouse.cli.serve;

import dev.dormouse.connector.CompatibilityFactors;
import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.connector.PullConnector;
import dev.dormouse.connector.SleepSupport;
import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.core.ConnectorHalves;
import dev.dormouse.model.ModelConfig;
import dev.dormouse.transport.nixl.NixlTransport;
import dev.dormouse.transport.nixl.UcxSleepDefaults;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Opens the pull connector over NIXL with UCX. */
final class Connectors {
    private static final Logger LOGGER = System.getLogger("dormouse.cli");
    private static final String BACKEND = "UCX";

    /**
     * Test only: with the value {@code skip-reregister} an engine keeps its registration over a
     * sleep, which is the fault.
     */
    private static final String FAULT_VARIABLE = "DORMOUSE_FAULT";

    private static final String SKIP_REREGISTER = "skip-reregister";

    private Connectors() {}

    static ConnectorHalves open(KvSettings settings, ModelConfig model, EngineConfig engine) {
        settings.warnings()
                .forEach(
                        warning -> LOGGER.log(Level.WARNING, "--kv-transfer-config: {0}", warning));
        if (engine.sleepMode()) {
            @Nullable String refusal = SleepSupport.refusal(SleepSupport.PULL, List.of(BACKEND));
            if (refusal != null) {
                throw new IllegalArgumentException(refusal);
            }
        }
        ConnectorConfig config = config(settings, model, engine);
        NixlTransport transport =
                NixlTransport.open(BACKEND, backendParameters(settings, engine.sleepMode()));
        return new ConnectorHalves(
                PullConnector.scheduler(config),
                List.of(PullConnector.worker(config, 0, transport)));
    }

    private static ConnectorConfig config(
            KvSettings settings, ModelConfig model, EngineConfig engine) {
        CompatibilityFactors factors =
                CompatibilityFactors.of(
                        model.name(),
                        "torch." + engine.kvType().dtype(),
                        model.kvHeads(),
                        model.headDimension(),
                        model.layers());
        return settings.connector(factors, engine.blockTokens())
                .skipReregistration(isFaulty())
                .build();
    }

    private static Map<String, String> backendParameters(KvSettings settings, boolean sleepMode) {
        Map<String, String> given = settings.backendParameters();
        if (!sleepMode) {
            return given;
        }
        Map<String, String> added = UcxSleepDefaults.added(given, System.getenv());
        LOGGER.log(
                Level.INFO,
                "sleep mode tells UCX: {0}",
                added.isEmpty() ? "nothing, all is set by the user" : added);
        return UcxSleepDefaults.applied(given, System.getenv());
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
