package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Only what is proven may sleep. */
final class SleepSupportTest {
    @Test
    void pullOverUcxMaySleep() {
        assertThat(SleepSupport.refusal("NixlPullConnector", List.of("UCX"))).isNull();
        assertThat(SleepSupport.refusal("NixlConnector", List.of("UCX"))).isNull();
    }

    @Test
    void pushOverUcxMaySleep() {
        assertThat(SleepSupport.refusal("NixlPushConnector", List.of("UCX"))).isNull();
        assertThat(SleepSupport.refusal("NixlPushConnector", List.of("GDS"))).isNotNull();
    }

    @Test
    void severalMaySleepIfEachMay() {
        List<String> ucx = List.of("UCX");
        assertThat(
                        SleepSupport.refusalOfMulti(
                                List.of("NixlConnector", "NixlPushConnector"), List.of(ucx, ucx)))
                .isNull();
        assertThat(
                        SleepSupport.refusalOfMulti(
                                List.of("NixlConnector", "MooncakeConnector"), List.of(ucx, ucx)))
                .contains("MooncakeConnector", "number 2 of MultiConnector");
        assertThat(
                        SleepSupport.refusalOfMulti(
                                List.of("NixlConnector", "NixlConnector"),
                                List.of(ucx, List.of("UCX", "GDS"))))
                .contains("backends=[UCX, GDS]");
        assertThat(SleepSupport.refusalOfMulti(List.of(), List.of())).contains("no connectors");
    }

    @Test
    void otherBackendsAreRefusedWithTheSetting() {
        for (List<String> backends :
                List.of(List.<String>of(), List.of("GDS"), List.of("UCX", "GDS"), List.of("ucx"))) {
            assertThat(SleepSupport.refusal(SleepSupport.PULL, backends))
                    .contains("--enable-sleep-mode", "backends=" + backends, "[UCX]");
        }
    }

    @Test
    void otherConnectorsAreRefusedByName() {
        for (String connector : List.of("MultiConnector", "MooncakeConnector", "", "nixl")) {
            assertThat(SleepSupport.refusal(connector, List.of("UCX")))
                    .contains("--enable-sleep-mode", "connector " + connector);
        }
    }
}
