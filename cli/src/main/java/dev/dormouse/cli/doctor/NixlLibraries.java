package dev.dormouse.cli.doctor;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * NIXL's libraries and plugins.
 *
 * @param directory the folder that holds {@code libnixl_capi.so}; empty when there is none
 * @param named what {@code DORMOUSE_NIXL_DIR} says, for the report
 * @param version the wheel's version, or "unknown version"
 * @param api the C API's dependencies; empty when they could not be found out
 * @param plugins each plugin that could be inspected, by name
 */
record NixlLibraries(
        Optional<String> directory,
        Optional<String> named,
        String version,
        Optional<SharedLibrary> api,
        Map<String, SharedLibrary> plugins) {
    private static final String REMEDY =
            "run ./dormouse doctor again with network, or set"
                    + " DORMOUSE_NIXL_DIR to the folder that holds libnixl_capi.so";
    private static final Pattern PLUGIN = Pattern.compile("libplugin_(\\w+)\\.so");
    private static final Pattern DIST_INFO = Pattern.compile("nixl_cu\\d+-(.+)\\.dist-info");

    static NixlLibraries find(Machine machine) {
        Optional<String> named = machine.variable("DORMOUSE_NIXL_DIR");
        Optional<String> directory =
                named.filter(folder -> machine.exists(folder + "/libnixl_capi.so"));
        if (directory.isEmpty()) {
            return new NixlLibraries(
                    directory, named, "unknown version", Optional.empty(), Map.of());
        }
        String folder = directory.get();
        Map<String, SharedLibrary> plugins = new TreeMap<>();
        for (String file : machine.names(folder + "/plugins")) {
            Matcher plugin = PLUGIN.matcher(file);
            if (plugin.matches()) {
                SharedLibrary.inspect(machine, folder + "/plugins/" + file)
                        .ifPresent(library -> plugins.put(plugin.group(1), library));
            }
        }
        return new NixlLibraries(
                directory,
                named,
                wheelVersion(machine.names(folder + "/..")),
                SharedLibrary.inspect(machine, folder + "/libnixl_capi.so"),
                plugins);
    }

    /** The version in the name of the wheel's metadata folder, which lies beside the libraries. */
    private static String wheelVersion(List<String> siblings) {
        return siblings.stream()
                .map(DIST_INFO::matcher)
                .filter(Matcher::matches)
                .map(matcher -> matcher.group(1))
                .findFirst()
                .orElse("unknown version");
    }

    /** The UCX plugin, if it is there and can be loaded. */
    Optional<SharedLibrary> ucx() {
        return Optional.ofNullable(plugins.get("UCX")).filter(ucx -> ucx.missing().isEmpty());
    }

    List<Finding> findings() {
        if (directory.isEmpty()) {
            String text =
                    named.map(folder -> "no libnixl_capi.so in " + folder).orElse("not found");
            return List.of(Finding.fail("NIXL", text, REMEDY));
        }
        List<Finding> findings = new ArrayList<>();
        String text = version + ", " + directory.get();
        findings.add(
                api.filter(library -> !library.missing().isEmpty())
                        .map(
                                library ->
                                        Finding.fail(
                                                "NIXL",
                                                text + ", cannot be loaded",
                                                "install " + library.missingText()))
                        .orElseGet(() -> Finding.ok("NIXL", text)));
        findings.add(pluginFinding());
        return findings;
    }

    private Finding pluginFinding() {
        Map<Boolean, String> names =
                plugins.entrySet().stream()
                        .collect(
                                Collectors.partitioningBy(
                                        plugin -> plugin.getValue().missing().isEmpty(),
                                        Collectors.mapping(
                                                Map.Entry::getKey, Collectors.joining(", "))));
        String usable = names.getOrDefault(true, "");
        String others = names.getOrDefault(false, "");
        String text =
                (usable.isEmpty() ? "none" : usable)
                        + (others.isEmpty() ? "" : "; not, for want of libraries: " + others);
        if (ucx().isPresent()) {
            return Finding.ok("NIXL plugins", text);
        }
        String remedy =
                Optional.ofNullable(plugins.get("UCX"))
                        .map(ucx -> "UCX is needed: install " + ucx.missingText())
                        .orElse("UCX is needed: " + REMEDY);
        return Finding.fail("NIXL plugins", text, remedy);
    }
}
