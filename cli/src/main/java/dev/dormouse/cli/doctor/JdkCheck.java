package dev.dormouse.cli.doctor;

import dev.dormouse.model.kernel.Kernels;

/**
 * The JVM that runs this.
 *
 * @param feature its feature version, such as 25
 * @param description version, vendor and place
 * @param hasVectorModule whether it has the Vector API
 */
record JdkCheck(int feature, String description, boolean hasVectorModule) {
    private static final int NEEDED = 25;

    static JdkCheck ofThisJvm() {
        String description =
                "%s (%s), %s, heap at most %s"
                        .formatted(
                                Runtime.version(),
                                System.getProperty("java.vendor"),
                                System.getProperty("java.home"),
                                Bytes.text(Runtime.getRuntime().maxMemory()));
        return new JdkCheck(Runtime.version().feature(), description, Kernels.hasVectors());
    }

    Finding finding() {
        if (feature != NEEDED) {
            return Finding.fail(
                    "JDK",
                    description,
                    "Temurin 25 from adoptium.net, and DORMOUSE_JAVA_HOME set to it");
        }
        if (!hasVectorModule) {
            return Finding.fail(
                    "JDK",
                    description + ", without the Vector API",
                    "start it with ./dormouse, or add --add-modules=jdk.incubator.vector");
        }
        return Finding.ok("JDK", description);
    }
}
