package dev.dormouse.transport.nixl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.testkit.Natives;
import dev.dormouse.testkit.Seeded;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The push connector between processes, over the real library, with memory that really goes and
 * comes. What is not in use is filled with nonsense: a write that comes late would be seen there,
 * or in another prompt.
 */
final class PushOverNixlTest {
    private static final int LEASE_SECONDS = 30;
    private static final int TIMEOUT_SECONDS = 30;
    private static final int ROUNDS = 12;

    private final Deque<EngineProcess> engines = new ArrayDeque<>();
    private int seed = 1;

    @BeforeAll
    static void requireLibrary() {
        Natives.nixlDirectory();
    }

    @AfterEach
    void end() {
        engines.forEach(EngineProcess::close);
    }

    @ParameterizedTest
    @EnumSource
    void promptsAreWrittenBetweenSleepsOfBothEngines(Tls tls) {
        EngineProcess p = start(tls, "P", 0);
        EngineProcess d = start(tls, "D", 0);
        for (int round = 0; round < 6; round++) {
            assertThat(d.read(p, seed++)).isEqualTo("{GOOD=1}");
            if (round % 3 != 0) {
                d.sleep();
                d.wake();
            }
            if (round % 3 != 1) {
                p.revokeAndSleep();
                p.wake();
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void noWriteComesAfterItsBlocksWereGivenAwayWhoeverSleepsWhen(Tls tls) {
        Seeded.forAll(1, random -> sleepAtRandom(tls, random));
    }

    private void sleepAtRandom(Tls tls, SplittableRandom random) {
        EngineProcess p = start(tls, "P", 0);
        EngineProcess d = start(tls, "D", 0);
        assertThat(d.read(p, seed++)).isEqualTo("{GOOD=1}");
        int count = 8;
        for (int round = 0; round < ROUNDS; round++) {
            d.decode(seed, p.prefill(seed, count));
            seed += count;
            d.steps(random.nextInt(4));
            p.steps(random.nextInt(3));
            boolean decoderSleeps = random.nextBoolean();
            boolean holderSleeps = random.nextBoolean();
            if (decoderSleeps) {
                d.sleep();
            }
            if (holderSleeps) {
                p.revokeAndSleep();
            }
            String outcome = d.settle();
            assertThat(outcome).doesNotContain("WRONG").doesNotContain("QUARANTINED");
            if (decoderSleeps) {
                d.wake();
            }
            if (holderSleeps) {
                p.wake();
            }
            d.steps(10);
            assertThat(d.unusedIsUntouched()).as("round " + round + " " + outcome).isTrue();
            assertThat(d.read(p, seed++)).isEqualTo("{GOOD=1}");
        }
    }

    @ParameterizedTest
    @EnumSource
    void whoeverComesToASleeperOrItsSuccessorFailsAtOnce(Tls tls) {
        EngineProcess p = start(tls, "P", 0);
        EngineProcess d = start(tls, "D", 0);
        assertThat(d.read(p, seed++)).isEqualTo("{GOOD=1}");
        String old = p.prefill(seed, 2);
        p.revokeAndSleep();
        d.decode(seed, old);
        assertThat(d.settle()).isEqualTo("{FAILED=2}");
        p.wake();
        assertThat(d.read(p, ++seed)).isEqualTo("{GOOD=1}");

        String lost = p.prefill(++seed, 2);
        int port = p.port();
        p.process().kill();
        d.decode(seed, lost);
        assertThat(d.settle()).isEqualTo("{FAILED=2}");
        EngineProcess successor = start(tls, "P", port);
        assertThat(d.read(successor, ++seed)).isEqualTo("{GOOD=1}");
    }

    private EngineProcess start(Tls tls, String engineId, int port) {
        EngineProcess started =
                EngineProcess.startPushing(tls, engineId, port, LEASE_SECONDS, TIMEOUT_SECONDS);
        engines.add(started);
        return started;
    }
}
