package dev.dormouse.nixl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Natives;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class ReadmeTest {
    @Test
    void theExampleOfTheReadmeRuns() throws InterruptedException {
        Natives.nixlDirectory();
        assertThat(ReadmeExample.readFromAPeer()).isEqualTo((byte) 42);
    }

    @Test
    void theReadmeShowsTheCodeThatRuns() throws IOException {
        String source =
                Files.readString(Path.of("src/test/java/dev/dormouse/nixl/ReadmeExample.java"));
        String example =
                source.substring(
                        source.indexOf("// readme: start\n") + "// readme: start\n".length(),
                        source.indexOf("    // readme: end"));
        assertThat(Files.readString(Path.of("README.md")))
                .contains("```java\n" + example.stripTrailing().stripIndent() + "\n```");
    }
}
