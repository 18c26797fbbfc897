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
    void largeKernelsAreTooLongToBeInlined() throws IOException {
        assertThat(bytecodes(VectorProduct.class))
                .allSatisfy(
                        (method, length) -> {
                            if (method.endsWith("Rows")) {
                                assertThat(length).isGreaterThan(INLINED_BYTECODES);
                            }
                        })
                .containsKeys("threeRows", "sixRows");
        assertThat(bytecodes(VectorRowProduct.class).get("nibbles"))
                .isGreaterThan(INLINED_BYTECODES);
        assertThat(bytecodes(VectorRowProduct.class).get("bytes")).isGreaterThan(INLINED_BYTECODES);
        assertThat(bytecodes(VectorRows.class).get("accumulate")).isGreaterThan(INLINED_BYTECODES);
        assertThat(bytecodes(VectorTiles.class).get("expand")).isGreaterThan(INLINED_BYTECODES);
    }

    private static Map<String, Integer> bytecodes(Class<?> type) throws IOException {
        Map<String, Integer> lengths = new HashMap<>();
        try (InputStream in = type.getResourceAsStream(type.getSimpleName() + ".class")) {
            byte[] bytes = Objects.requireNonNull(in).readAllBytes();
            for (var method : ClassFile.of().parse(bytes).methods()) {
                method.code()
                        .ifPresent(
                                code ->
                                        lengths.put(
                                                method.methodName().stringValue(),
                                                ((CodeAttribute) code).codeLength()));
            }
        }
        return lengths;
    }
}
