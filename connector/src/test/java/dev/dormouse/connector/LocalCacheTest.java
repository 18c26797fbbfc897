package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.transport.BlockRow;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What is built on a registration names the memory as it was registered. */
final class LocalCacheTest {
    private final ModelWorld world = new ModelWorld();
    private final ModelEngine.Rank rank = world.start("P").rank();
    private final List<BlockRow> prepared = new ArrayList<>();
    private int deviceId;

    @Test
    void rowsAndMetadataNameTheDeviceIdOfEachRegistration() {
        LocalCache cache = new LocalCache(transport(), world.config("P").build(), rank.regions());
        for (deviceId = 3; deviceId < 6; deviceId++) {
            prepared.clear();
            cache.register();
            assertThat(cache.metadata().deviceId()).isEqualTo(deviceId);
            assertThat(prepared).isNotEmpty().allMatch(row -> row.deviceId() == deviceId);
            cache.deregister();
        }
    }

    /** The rank's, which registers under another device id than it was told. */
    private KvTransport transport() {
        return proxy(KvTransport.class, rank.transport());
    }

    private <T> T proxy(Class<T> type, T target) {
        Object proxy =
                Proxy.newProxyInstance(
                        type.getClassLoader(),
                        new Class<?>[] {type},
                        (_, method, arguments) -> {
                            if (method.getName().equals("prepareLocal")) {
                                ((List<?>) arguments[0])
                                        .forEach(row -> prepared.add((BlockRow) row));
                            }
                            try {
                                Object result = method.invoke(target, arguments);
                                return switch (method.getName()) {
                                    case "register" ->
                                            proxy(Registration.class, (Registration) result);
                                    case "ranges" -> renamed((List<?>) result);
                                    default -> result;
                                };
                            } catch (InvocationTargetException e) {
                                throw e.getCause();
                            }
                        });
        return type.cast(proxy);
    }

    private List<MemoryRange> renamed(List<?> ranges) {
        return ranges.stream()
                .map(MemoryRange.class::cast)
                .map(
                        range ->
                                new MemoryRange(
                                        range.address(),
                                        range.lengthBytes(),
                                        range.kind(),
                                        deviceId))
                .toList();
    }
}
