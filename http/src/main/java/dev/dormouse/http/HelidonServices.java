package dev.dormouse.http;

import io.helidon.service.registry.GlobalServiceRegistry;
import io.helidon.service.registry.ServiceRegistryConfig;
import io.helidon.service.registry.ServiceRegistryManager;

/**
 * Helidon's registry of services, of which a listener needs none but those that it names itself.
 *
 * <p>Left alone, Helidon reads and parses the lists of services in all jars when its first class is
 * used, at each start of a process.
 */
final class HelidonServices {
    static {
        // An application of Helidon's that came first keeps what it has.
        if (!GlobalServiceRegistry.configured()) {
            GlobalServiceRegistry.registry(
                    ServiceRegistryManager.create(
                                    ServiceRegistryConfig.builder()
                                            .discoverServices(false)
                                            .discoverServicesFromServiceLoader(false)
                                            .build())
                            .registry());
        }
    }

    private HelidonServices() {}

    /** After this no class of Helidon's looks for services. Idempotent; any thread. */
    static void discoverNone() {
        // The static initialiser has done it.
    }
}
