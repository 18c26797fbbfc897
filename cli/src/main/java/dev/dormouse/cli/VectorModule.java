package dev.dormouse.cli;

import dev.dormouse.model.kernel.Kernels;

/**
 * Brings the Vector API into a JVM that started without it.
 *
 * <p>A JVM that starts with an incubator module ({@code --add-modules}) can keep neither its
 * modules nor linked classes, lambdas and method handles in an AOT cache: the JDK's {@code
 * ModuleBootstrap} archives no boot layer then. An engine needs a second of an old processor's time
 * more for them at each start, so the launcher starts without, and the module comes as the JDK
 * brings the module of an agent into a JVM that runs: by {@code jdk.internal.module.Modules}. It is
 * the boot loader's then, as it is otherwise, so the compiler treats its classes alike.
 *
 * <p>The cache must not have a class of the module, since the JVM resolves all that it has before
 * the module could come. So the rehearsal for it computes without vectors, and loads the module at
 * its end, only for how that is done.
 */
public final class VectorModule {
    private static final String NAME = "jdk.incubator.vector";

    private VectorModule() {}

    /**
     * Loads the module, unless it is there. Without {@code --add-exports
     * java.base/jdk.internal.module=ALL-UNNAMED}, or in a JDK without the module, nothing happens:
     * kernels compute without vectors then, and the model says so in the log.
     */
    public static void load() {
        if (Kernels.hasVectors()) {
            return;
        }
        try {
            Class.forName("jdk.internal.module.Modules")
                    .getMethod("loadModule", String.class)
                    .invoke(null, NAME);
        } catch (ReflectiveOperationException e) {
            // Not exported, or not part of this JDK.
            System.getLogger("dormouse.cli").log(System.Logger.Level.DEBUG, "no " + NAME, e);
        }
    }
}
