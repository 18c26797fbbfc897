package dev.dormouse.cli.demo;

import dev.dormouse.testkit.Natives;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives test classes the default model's fleet, which is started once for all of them, since a
 * start takes many seconds, and ends with the last of them. Each leaves it as it found it.
 */
final class SharedFleet implements ParameterResolver {
    private static final ExtensionContext.Namespace NAMESPACE =
            ExtensionContext.Namespace.create(SharedFleet.class);

    /** The fleet and the folder of its logs. */
    private static final class Shared implements AutoCloseable {
        private final Path logs;
        private final LiveFleet fleet;

        Shared() {
            Natives.nixlDirectory();
            Natives.model();
            try {
                logs = Files.createTempDirectory("dormouse-fleet");
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            fleet = new LiveFleet(logs);
        }

        @Override
        public void close() throws IOException {
            fleet.close();
            try (Stream<Path> files = Files.walk(logs)) {
                List<Path> deepestFirst = files.sorted(Comparator.reverseOrder()).toList();
                for (Path file : deepestFirst) {
                    Files.delete(file);
                }
            }
        }
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == LiveFleet.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        // Surefire hands the classes over one by one, each as a run of its own.
        return context.getStore(ExtensionContext.StoreScope.LAUNCHER_SESSION, NAMESPACE)
                .computeIfAbsent(Shared.class, _ -> new Shared(), Shared.class)
                .fleet;
    }
}
