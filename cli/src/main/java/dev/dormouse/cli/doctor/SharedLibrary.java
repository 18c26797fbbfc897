package dev.dormouse.cli.doctor;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * What the dynamic loader finds for a shared library, without loading it: UCX, for one, installs
 * signal handlers when loaded.
 *
 * @param found the path of each library that it needs and that was found
 * @param missing the names of those that were not
 */
record SharedLibrary(Map<String, String> found, List<String> missing) {
    private static final Pattern ENTRY =
            Pattern.compile("^\\s*(\\S+) => (not found|/\\S.*?)(?: \\(0x[0-9a-f]+\\))?$");

    /** Asks {@code ldd}; empty when it gives no answer. */
    static Optional<SharedLibrary> inspect(Machine machine, String path) {
        return machine.output("ldd", path).map(SharedLibrary::parse);
    }

    /** Reads the output of {@code ldd}. */
    static SharedLibrary parse(String ldd) {
        Map<String, String> found = new LinkedHashMap<>();
        List<String> missing =
                ldd.lines()
                        .map(ENTRY::matcher)
                        .filter(Matcher::matches)
                        .filter(entry -> !recordFound(found, entry))
                        .map(entry -> entry.group(1))
                        .distinct()
                        .toList();
        return new SharedLibrary(found, missing);
    }

    private static boolean recordFound(Map<String, String> found, Matcher entry) {
        boolean isFound = !entry.group(2).equals("not found");
        if (isFound) {
            found.put(entry.group(1), entry.group(2));
        }
        return isFound;
    }

    /** The path of the library whose file name starts so. */
    Optional<String> path(String prefix) {
        return found.entrySet().stream()
                .filter(entry -> entry.getKey().startsWith(prefix))
                .map(Map.Entry::getValue)
                .findFirst();
    }

    String missingText() {
        return missing.stream().collect(Collectors.joining(", "));
    }
}
