package dev.dormouse.cli;

import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.util.Objects;
import java.util.Properties;
import picocli.CommandLine.Command;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code dormouse version}. */
@Command(name = "version", description = "Print the version.", mixinStandardHelpOptions = true)
final class VersionCommand implements Runnable {
    @Spec private CommandSpec spec;

    @Override
    public void run() {
        PrintWriter out = spec.commandLine().getOut();
        out.println(text());
        out.flush();
    }

    private static String text() {
        return "dormouse " + projectVersion() + ", Java " + Runtime.version();
    }

    /** The version of the Maven project, written into a resource by the build. */
    private static String projectVersion() {
        Properties properties = new Properties();
        try (InputStream resource =
                VersionCommand.class.getResourceAsStream("version.properties")) {
            properties.load(Objects.requireNonNull(resource, "version.properties is not packaged"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return properties.getProperty("version");
    }

    /** Answers {@code --version} with the same text. */
    static final class Text implements IVersionProvider {
        @Override
        public String[] getVersion() {
            return new String[] {text()};
        }
    }
}
