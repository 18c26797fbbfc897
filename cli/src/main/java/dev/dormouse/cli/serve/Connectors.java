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
import java.time.Duration;
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

    static ConnectorHalves open(ServeOptions options, ModelConfig model, EngineConfig engine) {
        if (engine.sleepMode()) {
            @Nullable String refusal = SleepSupport.refusal(SleepSupport.PULL, List.of(BACKEND));
            if (refusal != null) {
                throw new IllegalArgumentException(refusal);
            }
        }
        ConnectorConfig config = config(options, model, engine);
        NixlTransport transport =
                NixlTransport.open(BACKEND, backendParameters(engine.sleepMode()));
        return new ConnectorHalves(
                PullConnector.scheduler(config),
                List.of(PullConnector.worker(config, 0, transport)));
    }

    private static ConnectorConfig config(
            ServeOptions options, ModelConfig model, EngineConfig engine) {
        CompatibilityFactors factors =
                CompatibilityFactors.of(
                        model.name(),
                        "torch." + engine.kvType().dtype(),
                        model.kvHeads(),
                        model.headDimension(),
                        model.layers());
        ConnectorConfig.Builder builder =
                ConnectorConfig.builder(factors, engine.blockTokens())
                        .bindHost(options.sideChannelHost)
                        .sideChannelPort(options.sideChannelPort)
                        .leaseDuration(Duration.ofSeconds(options.leaseSeconds))
                        .skipReregistration(isFaulty());
        if (options.advertisedHost != null) {
            builder.advertisedHost(options.advertisedHost);
        }
        if (options.engineId != null) {
            builder.engineId(options.engineId);
        }
        return builder.build();
    }

    private static Map<String, String> backendParameters(boolean sleepMode) {
        if (!sleepMode) {
            return Map.of();
        }
        Map<String, String> added = UcxSleepDefaults.added(Map.of(), System.getenv());
        LOGGER.log(
                Level.INFO,
                "sleep mode tells UCX: {0}",
                added.isEmpty() ? "nothing, all is set by the user" : added);
        return UcxSleepDefaults.applied(Map.of(), System.getenv());
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
