package dev.dormouse.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.cli.LauncherSandbox.Run;
import dev.dormouse.cli.LauncherSandbox.Running;
import dev.dormouse.testkit.Await;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** How {@code ./dormouse} makes and uses the AOT cache. */
final class LauncherFastStartTest extends LauncherFixture {
    private static final String PREPARING = "dormouse: preparing fast starts";

    @Test
    void eachBuildIsRehearsedOnce() throws Exception {
        assertThat(sandbox.run("serve").err()).contains(PREPARING);
        assertThat(sandbox.run("serve").err()).isEmpty();
        assertThat(sandbox.run("demo").err()).isEmpty();

        sandbox.write("checkout/cli/src/main/Source.java", "class Second {}");

        assertThat(sandbox.run("demo").err()).containsExactly("dormouse: building", PREPARING);
        assertThat(sandbox.lines("rehearsal.pids")).hasSize(2);
    }

    @Test
    void everyCommandStartsFromTheCache() throws Exception {
        sandbox.run("serve");

        for (String command : List.of("serve", "demo", "route", "version", "doctor", "bench")) {
            assertThat(sandbox.run(command).out())
                    .contains("-XX:AOTCache=" + cache(), "-Xlog:aot*=off");
        }
    }

    @Test
    void commandsThatStartNoEngineDoNotRehearse() throws Exception {
        for (String command : List.of("route", "version", "doctor", "bench", "help")) {
            assertThat(sandbox.run(command).err()).doesNotContain(PREPARING);
        }
        assertThat(sandbox.run("bench", "transfer").err()).doesNotContain(PREPARING);

        Run help = sandbox.run("serve", "--help");

        assertThat(help.err()).isEmpty();
        assertThat(help.out()).noneMatch(option -> option.startsWith("-XX:AOTCache"));
    }

    @Test
    void benchesOfServersMeasureTheirFastStarts() throws Exception {
        for (String bench : List.of("costs", "serve")) {
            assertThat(sandbox.run("bench", bench).err()).contains(PREPARING);
            sandbox.remove("checkout/cli/target/" + sandbox.builds().getFirst() + "/dormouse.aot");
        }
    }

    @Test
    void theRehearsalHasTheOptionsOfLaterStartsWithoutTheUsers() throws Exception {
        sandbox.set("DORMOUSE_JAVA_OPTS", "-XX:+UseG1GC -Dx=y");
        sandbox.run("serve");
        sandbox.unset("DORMOUSE_JAVA_OPTS");

        List<String> later = sandbox.run("serve").out();

        int common = later.indexOf("-XX:AOTCache=" + cache());
        assertThat(sandbox.lines("rehearsal.options"))
                .startsWith(later.subList(1, common).toArray(String[]::new))
                .endsWith("dev.dormouse.cli.Main", "rehearse")
                .hasSize(common - 1 + 3);
    }

    @Test
    void aFailedRehearsalStopsNothingAndIsNotRepeated() throws Exception {
        sandbox.write("rehearsal-fails", "");

        Run first = sandbox.run("serve", "--port", "1");
        Run second = sandbox.run("serve", "--port", "1");

        assertThat(first.status()).isZero();
        assertThat(first.err())
                .hasSize(3)
                .last()
                .asString()
                .startsWith("dormouse: fast starts could not be prepared")
                .contains(sandbox.checkout() + "/cli/target/rehearsal.log", cache());
        assertThat(second.err()).isEmpty();
        assertThat(second.out())
                .endsWith("serve", "--port", "1")
                .noneMatch(option -> option.startsWith("-XX:AOTCache"));
        assertThat(sandbox.lines("rehearsal.pids")).hasSize(1);
    }

    @Test
    void anInterruptedRehearsalEndsAndIsRepeated() throws Exception {
        sandbox.write("rehearsal-waits", "");
        Running running = sandbox.start("serve");
        Await.until("it rehearses", () -> !lines("rehearsal.pids").isEmpty());
        ProcessHandle rehearsal =
                ProcessHandle.of(Long.parseLong(lines("rehearsal.pids").getFirst())).orElseThrow();

        running.process().destroy();

        assertThat(running.await().status()).isEqualTo(143);
        Await.until("the rehearsal is gone", () -> !rehearsal.isAlive());
        sandbox.remove("rehearsal-waits");
        assertThat(sandbox.run("serve").out()).contains("-XX:AOTCache=" + cache());
    }

    @Test
    void optionsThatRuleTheCacheOutDo() throws Exception {
        sandbox.run("serve");

        for (String option : List.of("-Xshare:off", "-XX:SharedArchiveFile=x", "-XX:AOTMode=off")) {
            sandbox.set("DORMOUSE_JAVA_OPTS", option);
            assertThat(sandbox.run("version").out())
                    .contains(option)
                    .noneMatch(argument -> argument.startsWith("-XX:AOTCache"));
        }
    }

    private String cache() throws IOException {
        return sandbox.checkout() + "/cli/target/" + sandbox.builds().getFirst() + "/dormouse.aot";
    }

    private List<String> lines(String path) {
        try {
            return sandbox.lines(path);
        } catch (IOException e) {
            return List.of();
        }
    }
}
