package dev.dormouse.router.routing;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class EnginePoolTest {
    private static final URI ANYWHERE = URI.create("http://127.0.0.1:1");

    private final EnginePool pool =
            EnginePool.of(Role.DECODE, List.of(ANYWHERE, ANYWHERE, ANYWHERE, ANYWHERE, ANYWHERE));

    @Test
    void thoseThatAreReadyComeFirstByTurnsThenSleepersThenTheDead() {
        know(0, Engine.Readiness.DOWN);
        know(1, Engine.Readiness.READY);
        know(2, Engine.Readiness.UNREADY);
        know(3, Engine.Readiness.READY);
        know(4, Engine.Readiness.UNREADY);

        assertThat(names()).containsExactly(1, 3, 2, 4, 0);
        assertThat(names()).containsExactly(3, 1, 4, 2, 0);
        assertThat(names()).containsExactly(1, 3, 2, 4, 0);
    }

    @Test
    void thoseOfWhichNothingIsKnownAreTriedToo() {
        assertThat(names()).containsExactly(0, 1, 2, 3, 4);
        assertThat(names()).containsExactly(1, 2, 3, 4, 0);
        assertThat(pool.ready()).isFalse();
        know(2, Engine.Readiness.READY);
        assertThat(pool.ready()).isTrue();
    }

    @ParameterizedTest
    @CsvSource({
        "200,200,READY",
        "404,200,READY",
        "503,200,UNREADY",
        "503,503,DOWN",
        "404,404,DOWN",
        "500,500,DOWN"
    })
    void checksTellWhoTakesRequestsWhoSleepsAndWhoIsDead(
            int ready, int alive, Engine.Readiness readiness) {
        assertThat(Engine.Health.ofAnswers(ready, alive).readiness()).isEqualTo(readiness);
    }

    private void know(int index, Engine.Readiness readiness) {
        pool.engines().get(index).health(new Engine.Health(readiness, "told"));
    }

    private List<Integer> names() {
        List<Integer> indices = new ArrayList<>();
        pool.candidates().forEach(engine -> indices.add(pool.engines().indexOf(engine)));
        return indices;
    }
}
