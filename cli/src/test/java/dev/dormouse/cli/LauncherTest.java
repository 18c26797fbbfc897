package dev.dormouse.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cli.LauncherSandbox.Run;
import dev.dormouse.cli.LauncherSandbox.Running;
import dev.dormouse.testkit.Await;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/** How {@code ./dormouse} builds, starts the JVM, and runs the tests. */
final class LauncherTest extends LauncherFixture {
    @Test
    void startsTheJvmOnJarsWithItsFlagsAndTheArguments() throws Exception {
        Run run = sandbox.run("serve", "--name", "two words", "");

        assertThat(run.status()).isZero();
        assertThat(run.err())
                .containsExactly("dormouse: building", "dormouse: preparing fast starts");
        String app = sandbox.checkout() + "/cli/target/" + sandbox.builds().getFirst();
        assertThat(run.out())
                .contains(
                        "--enable-native-access=ALL-UNNAMED",
                        "--add-exports=java.base/jdk.internal.module=ALL-UNNAMED",
                        "-XX:+UseSerialGC")
                .containsSubsequence("-cp", app + "/a.jar:" + app + "/b.jar")
                .endsWith("dev.dormouse.cli.Main", "serve", "--name", "two words", "");
    }

    @Test
    void javaOptionsOfTheUserComeLast() throws Exception {
        sandbox.set("DORMOUSE_JAVA_OPTS", "-Xmx3g -Dx=y");

        List<String> out = sandbox.run("version").out();

        assertThat(out).containsSubsequence("-Xmx1g", "-Xmx3g", "-Dx=y", "dev.dormouse.cli.Main");
    }

    @Test
    void anotherCollectorOfTheUserReplacesOurs() throws Exception {
        sandbox.set("DORMOUSE_JAVA_OPTS", "-XX:+UseG1GC");

        assertThat(sandbox.run("version").out())
                .contains("-XX:+UseG1GC")
                .doesNotContain("-XX:+UseSerialGC");
    }

    @Test
    void becomesTheJvmSoThatStatusAndSignalsAreIts() throws Exception {
        sandbox.jdk("jdk", "25", "echo $$ > @/java.pid; trap 'exit 9' TERM; sleep 60 & wait");
        Running running = sandbox.start("serve");
        Await.until("the JVM runs", () -> Files.exists(directory.resolve("java.pid")));
        Await.until("its process id is written", () -> !lines("java.pid").isEmpty());
        assertThat(lines("java.pid")).containsExactly(Long.toString(running.process().pid()));

        List<ProcessHandle> children = running.process().descendants().toList();
        running.process().destroy();

        assertThat(running.await().status()).isEqualTo(9);
        children.forEach(ProcessHandle::destroy);
    }

    @Test
    void worksThroughASymbolicLink() throws Exception {
        Path link =
                Files.createSymbolicLink(
                        directory.resolve("link"), sandbox.checkout().resolve("dormouse"));

        Run run = sandbox.startCommand(List.of(link.toString(), "version")).await();

        assertThat(run.status()).isZero();
        assertThat(sandbox.builds()).hasSize(1);
    }

    @Test
    void buildsOnceAndAgainWhenASourceChanged() throws Exception {
        sandbox.run("version");
        sandbox.run("version");
        assertThat(sandbox.lines("maven.calls")).hasSize(1);
        List<String> before = sandbox.builds();

        sandbox.write("checkout/cli/src/main/Source.java", "class Sourse {}");
        assertThat(sandbox.run("version").status()).isZero();

        assertThat(sandbox.lines("maven.calls")).hasSize(2);
        assertThat(sandbox.builds()).hasSize(1).isNotEqualTo(before);
    }

    @Test
    void aBuildLeavesTheJarsOfARunningJvmAlone() throws Exception {
        sandbox.jdk("jdk", "25", "touch @/runs; [[ $* != *serve* ]] || read -r < @/end");
        sandbox.startCommand(List.of("/usr/bin/mkfifo", directory + "/end")).await();
        Running serving = sandbox.start("serve");
        Await.until("the JVM runs", () -> Files.exists(directory.resolve("runs")));
        List<String> served = sandbox.builds();

        sandbox.write("checkout/cli/src/main/Source.java", "class Second {}");
        sandbox.run("version");
        assertThat(sandbox.builds()).hasSize(2).containsAll(served);

        Files.writeString(directory.resolve("end"), "\n");
        assertThat(serving.await().status()).isZero();
        sandbox.write("checkout/cli/src/main/Source.java", "class Third {}");
        sandbox.run("version");
        assertThat(sandbox.builds()).hasSize(1).doesNotContainAnyElementsOf(served);
    }

    @Test
    void twoLaunchersAtOnceBuildOnce() throws Exception {
        slowBuild();
        Running first = sandbox.start("version");
        Running second = sandbox.start("version");
        Await.until("one waits for the other", () -> isWaiting(first) || isWaiting(second));
        sandbox.write("go", "");

        assertThat(first.await().status()).isZero();
        assertThat(second.await().status()).isZero();
        assertThat(sandbox.lines("maven.calls")).hasSize(1);
    }

    @Test
    void aFailedBuildShowsTheCompilersWordsAndIsRepeated() throws Exception {
        sandbox.script(
                "bin/mvn",
                """
                if [[ $1 == -v ]]; then echo 'Apache Maven 3.9.9'; exit; fi
                echo "$*" >> @/maven.calls
                echo '[INFO] nothing of interest'
                echo '[ERROR] /src/Source.java:[1,1] no'
                exit 1
                """);

        Run run = sandbox.run("version");

        assertThat(run.status()).isEqualTo(1);
        assertThat(run.err())
                .containsExactly(
                        "dormouse: building",
                        "[ERROR] /src/Source.java:[1,1] no",
                        "dormouse: the build failed; all of it is in "
                                + sandbox.checkout()
                                + "/cli/target/build.log");
        sandbox.run("version");
        assertThat(sandbox.lines("maven.calls")).hasSize(2);
    }

    @Test
    void aBuildWithoutNetworkSaysSoInOneLine() throws Exception {
        sandbox.script(
                "bin/mvn",
                """
                if [[ $1 == -v ]]; then echo 'Apache Maven 3.9.9'; exit; fi
                echo '[ERROR] Could not transfer artifact a:b:pom:1 from/to central: Unknown host'
                exit 1
                """);

        assertThat(sandbox.run("version").err())
                .hasSize(2)
                .last()
                .asString()
                .contains("check the network and ~/.m2/settings.xml");
    }

    @Test
    void terminationEndsTheBuildToo() throws Exception {
        slowBuild();
        Running running = sandbox.start("version");
        Await.until("Maven runs", () -> !lines("maven.pid").isEmpty());
        ProcessHandle maven =
                ProcessHandle.of(Long.parseLong(lines("maven.pid").getFirst())).orElseThrow();

        running.process().destroy();

        assertThat(running.await().status()).isEqualTo(143);
        Await.until("Maven is gone", () -> !maven.isAlive());
    }

    @Test
    void anOlderMavenIsUsedOnceToUnpackANewerOne() throws Exception {
        sandbox.script(
                "bin/mvn",
                """
                if [[ $1 == -v ]]; then printf '\\e[1mApache Maven 3.8.7\\e[m\\n'; exit; fi
                echo "$*" >> @/old.calls
                for argument; do
                    [[ $argument == -DoutputDirectory=* ]] && target=${argument#*=}
                done
                mkdir -p "$target/apache-maven-3.9.16/bin"
                mv @/new-mvn "$target/apache-maven-3.9.16/bin/mvn"
                """);
        sandbox.script(
                "new-mvn",
                """
                echo "JAVA_HOME=$JAVA_HOME" >> @/new.calls
                for argument; do
                    [[ $argument == -Ddormouse.app=* ]] && mkdir "${argument#*=}"
                done
                """);

        assertThat(sandbox.run("version").err())
                .containsExactly(
                        "dormouse: fetching Maven 3.9.16 with Maven 3.8.7", "dormouse: building");
        sandbox.write("checkout/cli/src/main/Source.java", "class Second {}");
        sandbox.run("version");

        assertThat(sandbox.lines("old.calls"))
                .singleElement()
                .asString()
                .contains("-Dartifact=org.apache.maven:apache-maven:3.9.16:tar.gz:bin");
        assertThat(sandbox.lines("new.calls"))
                .hasSize(2)
                .containsOnly("JAVA_HOME=" + directory.resolve("jdk"));
    }

    @Test
    void testsAreSummedOverModulesWithoutThoseOfEarlierRuns() throws Exception {
        report("old", 100, 50, 0, 0);
        sandbox.script(
                "bin/mvn",
                """
                if [[ $1 == -v ]]; then echo 'Apache Maven 3.9.9'; exit; fi
                echo "$DORMOUSE_REQUIRE_NATIVE $DORMOUSE_MODEL $*" >> @/maven.calls
                mkdir -p @/checkout/{a,b}/target/{surefire,failsafe}-reports
                cp @/a.xml @/checkout/a/target/surefire-reports/TEST-a.xml
                cp @/b.xml @/checkout/b/target/failsafe-reports/TEST-b.xml
                exit 3
                """);
        sandbox.write("a.xml", suite(10, 1, 0, 2));
        sandbox.write("b.xml", suite(5, 0, 1, 0));

        Run run = sandbox.run("test", "-pl", "nixl", "-Dtest=A B");

        assertThat(run.status()).isEqualTo(3);
        assertThat(run.out()).containsExactly("11 passed, 2 failed, 2 skipped");
        assertThat(sandbox.lines("maven.calls"))
                .singleElement()
                .asString()
                .startsWith("1 /model.gguf ")
                .endsWith(" verify --fail-at-end -pl nixl -Dtest=A B -T 2")
                .doesNotContain("spotless");
    }

    @Test
    void environmentIsPrintedForAShellToRead() throws Exception {
        sandbox.set("DORMOUSE_MODEL", "/a folder/it's.gguf");
        Run run = sandbox.run("env");
        assertThat(run.err()).isEmpty();
        String script = String.join("\n", run.out()) + "\necho \"$DORMOUSE_MODEL|$JAVA_HOME\"";

        Run shell = sandbox.startCommand(List.of("/bin/bash", "-c", script)).await();

        assertThat(shell.out()).containsExactly("/a folder/it's.gguf|" + directory.resolve("jdk"));
        assertThat(sandbox.lines("maven.calls")).isEmpty();
    }

    private void slowBuild() throws IOException {
        sandbox.script(
                "bin/mvn",
                """
                if [[ $1 == -v ]]; then echo 'Apache Maven 3.9.9'; exit; fi
                echo "$*" >> @/maven.calls
                echo $$ > @/maven.pid
                while [[ ! -e @/go ]]; do sleep 0.05; done
                for argument; do
                    [[ $argument == -Ddormouse.app=* ]] && mkdir "${argument#*=}"
                done
                """);
    }

    private void report(String name, int tests, int failures, int errors, int skipped)
            throws IOException {
        sandbox.write(
                "checkout/cli/target/surefire-reports/TEST-" + name + ".xml",
                suite(tests, failures, errors, skipped));
    }

    /** A report as Surefire writes it, with a test whose name looks like a count. */
    private static String suite(int tests, int failures, int errors, int skipped) {
        return """
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuite xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" version="3.0.2" \
        name="X" time="0.5" tests="%d" errors="%d" skipped="%d" failures="%d">
          <testcase name="a tests="7"" time="0.1"/>
        </testsuite>
        """
                .formatted(tests, errors, skipped, failures);
    }

    private boolean isWaiting(Running running) {
        try {
            return Files.readString(running.err()).contains("waiting for another dormouse");
        } catch (IOException e) {
            return false;
        }
    }

    private List<String> lines(String path) {
        try {
            return sandbox.lines(path);
        } catch (IOException e) {
            return List.of();
        }
    }
}
