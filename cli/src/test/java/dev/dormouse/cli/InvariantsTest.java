package dev.dormouse.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Each invariant of docs/invariants.md has its tests, under the names that it gives. */
final class InvariantsTest {
    private static final Path ROOT = Path.of("..");
    private static final Pattern TEST = Pattern.compile("`([A-Z]\\w*)\\.(\\w+)`");
    private static final Pattern METHOD = Pattern.compile("    (?:public )?void (\\w+)\\(.*");

    @Test
    void everyTestThatIsNamedIsThere() throws IOException {
        Map<String, List<String>> tests = tests();
        Matcher named = TEST.matcher(Files.readString(ROOT.resolve("docs/invariants.md")));
        List<String> missing = new ArrayList<>();
        int found = 0;
        while (named.find()) {
            if (tests.getOrDefault(named.group(1), List.of()).contains(named.group(2))) {
                found++;
            } else {
                missing.add(named.group());
            }
        }
        assertThat(missing).isEmpty();
        assertThat(found).isGreaterThan(200);
    }

    @Test
    void everyInvariantNamesATest() throws IOException {
        List<String> rows =
                Files.readAllLines(ROOT.resolve("docs/invariants.md")).stream()
                        .takeWhile(line -> !line.equals("## Not applicable"))
                        .filter(line -> line.startsWith("| ") && !line.startsWith("| invariant"))
                        .toList();
        assertThat(rows).hasSizeGreaterThan(100).allMatch(row -> TEST.matcher(row).find());
    }

    /** The tests of each class; those of the contract are in testkit's main sources. */
    private static Map<String, List<String>> tests() throws IOException {
        Map<String, List<String>> tests = new HashMap<>();
        try (Stream<Path> files =
                Files.find(
                        ROOT,
                        12,
                        (file, attributes) -> attributes.isRegularFile() && isTest(file))) {
            for (Path file : files.toList()) {
                String type = file.getFileName().toString().replace(".java", "");
                tests.computeIfAbsent(type, _ -> new ArrayList<>()).addAll(methods(file));
            }
        }
        return tests;
    }

    private static boolean isTest(Path file) {
        String path = file.toString();
        return path.contains("/src/")
                && (path.endsWith("Test.java") || path.endsWith("Contract.java"));
    }

    private static List<String> methods(Path file) throws IOException {
        List<String> methods = new ArrayList<>();
        boolean annotated = false;
        for (String line : Files.readAllLines(file)) {
            Matcher method = METHOD.matcher(line);
            if (line.startsWith("    @Test") || line.startsWith("    @ParameterizedTest")) {
                annotated = true;
            } else if (annotated && method.matches()) {
                methods.add(method.group(1));
                annotated = false;
            }
        }
        return methods;
    }
}
