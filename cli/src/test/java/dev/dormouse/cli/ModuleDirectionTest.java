package dev.dormouse.cli;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Each module uses only what stands before it; see docs/adr/0001-modules.md. */
class ModuleDirectionTest {
    private static final Map<String, List<String>> USES =
            Map.ofEntries(
                    Map.entry("foreign", List.of()),
                    Map.entry("cuda", List.of("foreign")),
                    Map.entry("nixl", List.of("foreign")),
                    Map.entry("memory", List.of("cuda", "foreign")),
                    Map.entry("transport", List.of()),
                    Map.entry("transport.nixl", List.of("transport", "nixl", "cuda", "foreign")),
                    Map.entry("transport.local", List.of("transport", "cuda", "foreign")),
                    Map.entry("connector", List.of("transport")),
                    Map.entry("model", List.of()),
                    Map.entry(
                            "engine",
                            List.of("connector", "transport", "memory", "model", "foreign")),
                    Map.entry("http", List.of()),
                    Map.entry("server", List.of("engine", "connector", "model", "http")),
                    Map.entry("router", List.of("http")),
                    Map.entry(
                            "simulation",
                            List.of(
                                    "engine",
                                    "connector",
                                    "transport",
                                    "memory",
                                    "model",
                                    "router")));

    private static final JavaClasses CLASSES =
            new ClassFileImporter()
                    .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
                    .importPackages("dev.dormouse");

    @Test
    void modulesUseOnlyWhatStandsBeforeThem() {
        USES.forEach(
                (module, uses) ->
                        USES.keySet().stream()
                                .filter(other -> !other.equals(module) && !uses.contains(other))
                                .forEach(other -> requireIndependent(module, other)));
    }

    @Test
    void nobodyUsesTheCommandLine() {
        noClasses()
                .that()
                .resideOutsideOfPackage("dev.dormouse.cli..")
                .should()
                .dependOnClassesThat()
                .resideInAPackage("dev.dormouse.cli..")
                .check(CLASSES);
    }

    /** Benchmarks stand in the packages of what they measure, but in a module of their own. */
    @Test
    void noBenchmarkOfJmhIsOnTheClassPath() {
        noClasses()
                .should()
                .dependOnClassesThat()
                .resideInAPackage("org.openjdk.jmh..")
                .check(CLASSES);
    }

    @Test
    void theRoutersDecisionsKnowNoHttp() {
        noClasses()
                .that()
                .resideInAPackage("dev.dormouse.router.routing")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(
                        "dev.dormouse.router", "io.helidon..", "io.micrometer..", "java.net.http..")
                .check(CLASSES);
    }

    @Test
    void onlyForeignLinksNativeCode() {
        noClasses()
                .that()
                .resideOutsideOfPackages("dev.dormouse.foreign..", "dev.dormouse.nixl..")
                .should()
                .dependOnClassesThat()
                .haveFullyQualifiedName("java.lang.foreign.Linker")
                .check(CLASSES);
    }

    @Test
    void nobodyDeserializesJavaObjects() {
        noClasses()
                .should()
                .dependOnClassesThat()
                .haveFullyQualifiedName("java.io.ObjectInputStream")
                .check(CLASSES);
    }

    private static void requireIndependent(String module, String other) {
        String own = pattern(module);
        noClasses()
                .that()
                .resideInAnyPackage(own)
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(pattern(other))
                .check(CLASSES);
    }

    /** The transport's own package stands above those of its implementations. */
    private static String pattern(String module) {
        return module.equals("transport")
                ? "dev.dormouse.transport"
                : "dev.dormouse." + module + "..";
    }
}
