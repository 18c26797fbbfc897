package dev.dormouse.foreign;

import java.lang.System.Logger;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A shared library and where to look for it: a folder named by a system property, else one named by
 * an environment variable, else the dynamic linker's own search path. A folder that is named must
 * hold the library; there is no silent second choice.
 *
 * @param name how people call it, as {@code NIXL}
 * @param soname its file name, as {@code libnixl_capi.so}
 * @param directoryProperty the system property
 * @param directoryVariable the environment variable
 */
public record NativeLibrary(
        String name, String soname, String directoryProperty, String directoryVariable) {
    private static final Logger LOGGER = System.getLogger("dormouse.foreign");
    private static final String REMEDY = "; run `./dormouse doctor`";

    /**
     * Loads the library for the life of the process. Never throws: when the library cannot be
     * loaded, {@link SymbolBinder#verify()} of the result says why.
     */
    public SymbolBinder open() {
        return open(System.getProperty(directoryProperty), System.getenv(directoryVariable));
    }

    SymbolBinder open(@Nullable String propertyValue, @Nullable String variableValue) {
        if (propertyValue != null && !propertyValue.isBlank()) {
            return openIn(propertyValue, "property " + directoryProperty);
        }
        if (variableValue != null && !variableValue.isBlank()) {
            return openIn(variableValue, "environment " + directoryVariable);
        }
        try {
            return present(
                    SymbolLookup.libraryLookup(soname, Arena.global()), soname, "search path");
        } catch (IllegalArgumentException e) {
            return absent(
                    "neither property %s nor environment %s names its folder, and the search path gives: %s"
                            .formatted(
                                    directoryProperty,
                                    directoryVariable,
                                    DynamicLoader.reason(soname)));
        }
    }

    private SymbolBinder openIn(String directory, String source) {
        Path file = Path.of(directory, soname).toAbsolutePath();
        if (!Files.isRegularFile(file)) {
            return absent("no file " + file + " (from " + source + ")");
        }
        try {
            return present(
                    SymbolLookup.libraryLookup(file, Arena.global()), file.toString(), source);
        } catch (IllegalArgumentException e) {
            return absent(DynamicLoader.reason(file.toString()) + " (from " + source + ")");
        }
    }

    private SymbolBinder present(SymbolLookup lookup, String path, String source) {
        LOGGER.log(Logger.Level.INFO, "loaded library={0} path={1} source={2}", name, path, source);
        return new SymbolBinder(name, lookup, null);
    }

    private SymbolBinder absent(String reason) {
        String absence = "load " + name + " failed: " + soname + ": " + reason + REMEDY;
        return new SymbolBinder(name, symbol -> Optional.empty(), absence);
    }
}
