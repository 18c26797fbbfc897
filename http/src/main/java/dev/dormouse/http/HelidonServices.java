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
    private HelidonServices() {}

    /**
     * After this no class of Helidon's looks for services, unless an application of Helidon's came
     * first, which keeps what it has. Idempotent; any thread.
     */
    static void discoverNone() {
        GlobalServiceRegistry.registry(
                () ->
                        ServiceRegistryManager.create(
                                        ServiceRegistryConfig.builder()
                                                .discoverServices(false)
                                                .discoverServicesFromServiceLoader(false)
                                                .build())
                                .registry());
    }
}
