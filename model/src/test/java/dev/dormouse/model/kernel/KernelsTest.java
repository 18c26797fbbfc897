package dev.dormouse.model.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Runs {@link KernelComparison} in every vector width. */
final class KernelsTest {
    private static final List<Integer> WIDTHS = List.of(128, 256, 512);
    private static final List<String> COMPARISONS =
            List.of(
                    "headsAndTiles",
                    "packedProducts",
                    "products",
                    "rows",
                    "softmaxAndMerges",
                    "tokens");

    static Stream<Arguments> widthsAndComparisons() {
        return WIDTHS.stream()
                .flatMap(bits -> COMPARISONS.stream().map(name -> Arguments.of(bits, name)));
    }

    @ParameterizedTest(name = "{0} bits: {1}")
    @MethodSource("widthsAndComparisons")
    void vectorKernelsEqualTheScalarOnes(int bits, String comparison) throws Throwable {
        Class<?> loaded = comparisonClass(bits);
        try {
            loaded.getMethod(comparison).invoke(null);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    @Test
    void theListOfComparisonsIsComplete() {
        assertThat(
                        Arrays.stream(KernelComparison.class.getMethods())
                                .filter(m -> m.getDeclaringClass() == KernelComparison.class)
                                .map(java.lang.reflect.Method::getName)
                                .filter(name -> !name.equals("name")))
                .containsExactlyInAnyOrderElementsOf(COMPARISONS);
    }

    @Test
    void theBestKernelsAreVectorsHere() {
        assertThat(Kernels.best().name()).startsWith("vector-");
    }

    /** The width is a constant of its class, so another one needs the package loaded anew. */
    private static Class<?> comparisonClass(int bits) throws ReflectiveOperationException {
        String property = "dormouse.vector.bits";
        String before = System.setProperty(property, Integer.toString(bits));
        try {
            Class<?> loaded =
                    Class.forName(
                            KernelComparison.class.getName(), true, new KernelPackageLoader());
            assertThat(loaded.getMethod("name").invoke(null)).isEqualTo("vector-" + bits);
            return loaded;
        } finally {
            if (before == null) {
                System.clearProperty(property);
            } else {
                System.setProperty(property, before);
            }
        }
    }

    /** Loads the kernel package itself and leaves everything else to its parent. */
    private static final class KernelPackageLoader extends ClassLoader {
        private static final String PACKAGE = KernelComparison.class.getPackageName() + ".";

        KernelPackageLoader() {
            super(KernelsTest.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                if (!name.startsWith(PACKAGE) || findLoadedClass(name) != null) {
                    return super.loadClass(name, resolve);
                }
                byte[] code = read(name);
                return defineClass(name, code, 0, code.length);
            }
        }

        private byte[] read(String name) throws ClassNotFoundException {
            try (InputStream in = getResourceAsStream(name.replace('.', '/') + ".class")) {
                if (in == null) {
                    throw new ClassNotFoundException(name);
                }
                return in.readAllBytes();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
