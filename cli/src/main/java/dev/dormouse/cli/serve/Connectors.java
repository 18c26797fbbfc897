package dev.dormouse.cli.serve;

import dev.dormouse.engine.EngineConfig;
import dev.dormouse.engine.core.ConnectorHalves;
import dev.dormouse.model.ModelConfig;

/** Opens the connector of an engine. */
final class Connectors {
    private Connectors() {}

    static ConnectorHalves open(ServeOptions options, ModelConfig model, EngineConfig config) {
        throw new IllegalStateException("not yet " + options.role + model + config);
    }
}
