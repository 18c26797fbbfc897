package dev.dormouse.model.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.lang.classfile.ClassFile;
import java.lang.classfile.attribute.CodeAttribute;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;

/** Watches the lengths that keep C2 from inlining large kernels: see {@link VectorShapes}. */
final class KernelSizeTest {
    /** HotSpot's FreqInlineSize. */
    private static final int INLINED_BYTECODES = 325;

    @Test
    void largeKernelsAreTooLongToBeInlined() throws IOException, ClassNotFoundException {
        assertTooLong(VectorProduct.class, "threeRows", "fourRows", "sixRows");
        assertTooLong(VectorPackedProduct.class, "nibbles", "bytes");
        assertTooLong(VectorScaledProduct.class, "bytes");
        assertTooLong(VectorFewQueries.class, "scores", "sums");
        assertTooLong(VectorSums.class, "sixRows");
        assertTooLong(VectorTiles.class, "expand", "expandScaled");
        assertTooLong(Class.forName("dev.dormouse.model.PagedAttention"), "attendGroup");
    }

    private static void assertTooLong(Class<?> type, String... methods) throws IOException {
        Map<String, Integer> shortest = bytecodes(type);
        for (String method : methods) {
            assertThat(shortest.get(method))
                    .as("bytecodes of %s.%s", type.getSimpleName(), method)
                    .isGreaterThan(INLINED_BYTECODES);
        }
    }

    /** By name; the shortest of overloaded methods. */
    private static Map<String, Integer> bytecodes(Class<?> type) throws IOException {
        Map<String, Integer> lengths = new HashMap<>();
        try (InputStream in = type.getResourceAsStream(type.getSimpleName() + ".class")) {
            byte[] bytes = Objects.requireNonNull(in).readAllBytes();
            for (var method : ClassFile.of().parse(bytes).methods()) {
                method.code()
                        .ifPresent(
                                code ->
                                        lengths.merge(
                                                method.methodName().stringValue(),
                                                ((CodeAttribute) code).codeLength(),
                                                Math::min));
            }
        }
        return lengths;
    }
}
