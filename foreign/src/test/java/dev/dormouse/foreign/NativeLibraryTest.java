package dev.dormouse.foreign;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeLibraryTest {
    private static final NativeLibrary MATH =
            new NativeLibrary("math", "libm.so.6", "test.math.dir", "TEST_MATH_DIR");
    private static final NativeLibrary NOWHERE =
            new NativeLibrary("nowhere", "libnowhere.so", "test.nowhere.dir", "TEST_NOWHERE_DIR");

    @Test
    void aLibraryOnTheSearchPathBinds() throws Throwable {
        SymbolBinder binder = MATH.open();
        MethodHandle cos = binder.function("cos", JAVA_DOUBLE, JAVA_DOUBLE);

        binder.verify();

        assertThat((double) cos.invokeExact(0.0)).isEqualTo(1.0);
    }

    @Test
    void allMissingFunctionsAreNamedTogether() {
        SymbolBinder binder = MATH.open();
        binder.function("cos", JAVA_DOUBLE, JAVA_DOUBLE);
        MethodHandle first = binder.function("no_such_function", JAVA_INT, JAVA_DOUBLE);
        MethodHandle second = binder.procedure("nor_this", JAVA_INT);

        assertThatThrownBy(binder::verify)
                .isInstanceOf(NativeLibraryException.class)
                .hasMessageContaining("math")
                .hasMessageContaining("2 functions are missing: no_such_function, nor_this")
                .hasMessageEndingWith("run `./dormouse doctor`");
        assertThatThrownBy(
                        () -> {
                            int ignored = (int) first.invokeExact(1.0);
                        })
                .isInstanceOf(NativeLibraryException.class)
                .hasMessageContaining("no_such_function, nor_this");
        assertThatThrownBy(
                        () -> {
                            second.invokeExact(1);
                        })
                .isInstanceOf(NativeLibraryException.class);
    }

    @Test
    void anAbsentLibraryIsReportedOnceItIsNeeded() {
        SymbolBinder binder = NOWHERE.open(null, " ");
        MethodHandle handle = binder.procedure("anything", JAVA_INT);

        assertThatThrownBy(binder::verify)
                .isInstanceOf(NativeLibraryException.class)
                .hasMessageContaining("load nowhere failed: libnowhere.so")
                .hasMessageContaining("test.nowhere.dir")
                .hasMessageContaining("TEST_NOWHERE_DIR")
                .hasMessageContaining("cannot open shared object file")
                .hasMessageEndingWith("run `./dormouse doctor`");
        assertThatThrownBy(
                        () -> {
                            handle.invokeExact(1);
                        })
                .isInstanceOf(NativeLibraryException.class)
                .hasMessageContaining("load nowhere failed");
    }

    @Test
    void theNamedFolderDecidesAndThePropertyComesFirst(@TempDir Path folder) {
        assertThatThrownBy(() -> MATH.open(folder.toString(), "/usr/lib").verify())
                .hasMessageContaining("no file " + folder.resolve("libm.so.6"))
                .hasMessageContaining("property test.math.dir");
        assertThatThrownBy(() -> MATH.open(null, folder.toString()).verify())
                .hasMessageContaining("no file " + folder.resolve("libm.so.6"))
                .hasMessageContaining("environment TEST_MATH_DIR");
        assertThatCode(() -> MATH.open(null, null).verify()).doesNotThrowAnyException();
    }

    @Test
    void theDynamicLinkersReasonIsPassedOn(@TempDir Path folder) throws Exception {
        Files.writeString(folder.resolve("libm.so.6"), "not a library");

        assertThatThrownBy(() -> MATH.open(folder.toString(), null).verify())
                .hasMessageContaining("libm.so.6: ")
                .hasMessageContaining("file too short");
    }

    @Test
    void theFirstFileNameThatIsThereIsLoaded(@TempDir Path folder) {
        NativeLibrary newer = math(List.of("libm.so.7", "libm.so.6"), List.of());

        assertThatCode(() -> newer.open(null, null).verify()).doesNotThrowAnyException();
        assertThatThrownBy(() -> newer.open(folder.toString(), null).verify())
                .hasMessageContaining("no file " + folder.resolve("libm.so.7 or libm.so.6"));
    }

    @Test
    void theUsualFoldersComeAfterTheSearchPath(@TempDir Path folder) throws Exception {
        NativeLibrary library = math(List.of("libmath.so"), List.of(folder));

        assertThatThrownBy(() -> library.open(null, null).verify())
                .hasMessageContaining("cannot open shared object file")
                .hasMessageContaining("no such file in " + folder)
                .hasMessageEndingWith("; learn to count");
        Files.writeString(folder.resolve("libmath.so"), "not a library");
        assertThatThrownBy(() -> library.open(null, null).verify())
                .hasMessageContaining("file too short (from usual folder)");
    }

    private static NativeLibrary math(List<String> sonames, List<Path> usualDirectories) {
        return new NativeLibrary(
                "math",
                sonames,
                "test.math.dir",
                "TEST_MATH_DIR",
                usualDirectories,
                "learn to count");
    }
}
