package dev.dormouse.foreign;

import java.lang.System.Logger;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A shared library and where to look for it: a folder named by a system property, else one named by
 * an environment variable, else the dynamic linker's own search path and then the usual folders. A
 * folder that is named must hold the library; there is no silent second choice.
 *
 * @param name how people call it, as {@code NIXL}
 * @param sonames its file names, the preferred one first, as {@code libnixl_capi.so}
 * @param directoryProperty the system property
 * @param directoryVariable the environment variable
 * @param usualDirectories where its installer puts it, outside of the search path
 * @param remedy what to do when it is absent or of another version, as {@code run ...}
 */
public record NativeLibrary(
        String name,
        List<String> sonames,
        String directoryProperty,
        String directoryVariable,
        List<Path> usualDirectories,
        String remedy) {
    private static final Logger LOGGER = System.getLogger("dormouse.foreign");

    /** Copies the lists. */
    public NativeLibrary {
        sonames = List.copyOf(sonames);
        usualDirectories = List.copyOf(usualDirectories);
    }

    /** A library of one file name, which the set-up brings and the doctor knows. */
    public NativeLibrary(
            String name, String soname, String directoryProperty, String directoryVariable) {
        this(
                name,
                List.of(soname),
                directoryProperty,
                directoryVariable,
                List.of(),
                "run `./dormouse doctor`");
    }

    /**
     * Loads the library for the life of the process. Never throws: when the library cannot be
     * loaded, {@link SymbolBinder#verify()} of the result says why.
     */
    public SymbolBinder open() {
        return open(System.getProperty(directoryProperty), System.getenv(directoryVariable));
    }

    SymbolBinder open(@Nullable String propertyValue, @Nullable String variableValue) {
        if (propertyValue != null && !propertyValue.isBlank()) {
            return openNamed(Path.of(propertyValue), "property " + directoryProperty);
        }
        if (variableValue != null && !variableValue.isBlank()) {
            return openNamed(Path.of(variableValue), "environment " + directoryVariable);
        }
        List<String> reasons = new ArrayList<>();
        for (String soname : sonames) {
            try {
                return present(
                        SymbolLookup.libraryLookup(soname, Arena.global()), soname, "search path");
            } catch (IllegalArgumentException e) {
                reasons.add(DynamicLoader.reason(soname));
            }
        }
        for (Path directory : usualDirectories) {
            Path file = fileIn(directory);
            if (file != null) {
                return openFile(file, "usual folder");
            }
            reasons.add("no such file in " + directory);
        }
        return absent(
                "neither property %s nor environment %s names its folder, and the search path gives: %s"
                        .formatted(
                                directoryProperty, directoryVariable, String.join(", ", reasons)));
    }

    private SymbolBinder openNamed(Path directory, String source) {
        Path file = fileIn(directory);
        return file == null
                ? absent(
                        "no file %s (from %s)"
                                .formatted(
                                        directory
                                                .resolve(String.join(" or ", sonames))
                                                .toAbsolutePath(),
                                        source))
                : openFile(file, source);
    }

    private @Nullable Path fileIn(Path directory) {
        return sonames.stream()
                .map(soname -> directory.resolve(soname).toAbsolutePath())
                .filter(Files::isRegularFile)
                .findFirst()
                .orElse(null);
    }

    private SymbolBinder openFile(Path file, String source) {
        try {
            return present(
                    SymbolLookup.libraryLookup(file, Arena.global()), file.toString(), source);
        } catch (IllegalArgumentException e) {
            return absent(DynamicLoader.reason(file.toString()) + " (from " + source + ")");
        }
    }

    private SymbolBinder present(SymbolLookup lookup, String path, String source) {
        LOGGER.log(Logger.Level.INFO, "loaded library={0} path={1} source={2}", name, path, source);
        return new SymbolBinder(name, lookup, null, remedy);
    }

    private SymbolBinder absent(String reason) {
        String absence =
                "load %s failed: %s: %s; %s"
                        .formatted(name, String.join(" or ", sonames), reason, remedy);
        return new SymbolBinder(name, symbol -> Optional.empty(), absence, remedy);
    }
}
