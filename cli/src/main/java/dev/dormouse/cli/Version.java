package dev.dormouse.cli;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Objects;
import java.util.Properties;

/** Which Dormouse this is. */
public final class Version {
    private Version() {}

    /** The version of the Maven project, written into a resource by the build. */
    public static String ofProject() {
        Properties properties = new Properties();
        try (InputStream resource = Version.class.getResourceAsStream("version.properties")) {
            properties.load(Objects.requireNonNull(resource, "version.properties is not packaged"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return properties.getProperty("version");
    }
}
