package dev.dormouse.simulation;

import dev.dormouse.connector.ConnectorConfig;
import dev.dormouse.engine.core.ConnectorHalves;
import dev.dormouse.engine.core.RankMemory;
import dev.dormouse.testkit.ModelTransport;

/** Takes a rule away from the code under simulation, so that tests see the checks notice it. */
interface Tampering {
    /** The code as it is. */
    Tampering NONE = new Tampering() {};

    /** The world, made one in which the rule is needed often. */
    default Setting setting(Setting drawn) {
        return drawn;
    }

    /** The connector's settings, changed. */
    default ConnectorConfig.Builder settings(ConnectorConfig.Builder settings) {
        return settings;
    }

    /** Whether the pages and registrations of a process are looked at, or only its answers. */
    default boolean checksMemory() {
        return true;
    }

    /** A transport that was just opened. */
    default void opened(ModelTransport transport) {}

    /** A connector's halves, wrapped. */
    default ConnectorHalves halves(ConnectorHalves halves) {
        return halves;
    }

    /** A rank's memory, wrapped. */
    default RankMemory memory(RankMemory memory) {
        return memory;
    }
}
