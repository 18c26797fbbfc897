package dev.dormouse.http;

import static org.assertj.core.api.Assertions.assertThat;

import io.helidon.service.registry.GlobalServiceRegistry;
import io.helidon.service.registry.Lookup;
import io.helidon.service.registry.ServiceRegistryManager;
import org.junit.jupiter.api.Test;

final class HelidonServicesTest {
    @Test
    void aListenerHasFewerServicesThanTheClassPath() {
        HttpListener.prepare();

        ServiceRegistryManager discovering = ServiceRegistryManager.create();
        try {
            int all = discovering.registry().lookupServices(Lookup.EMPTY).size();
            assertThat(GlobalServiceRegistry.registry().lookupServices(Lookup.EMPTY))
                    .hasSizeLessThan(all);
        } finally {
            discovering.shutdown();
        }
    }
}
