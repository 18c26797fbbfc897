package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.dormouse.testkit.ModelFault;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Each failure is logged once, under vLLM's word for it. */
final class LoggedFailuresTest {
    private final ModelWorld world = new ModelWorld();
    private final ModelEngine p = world.start("P");
    private final ModelEngine d = world.start("D");
    private final Logger logger = Logger.getLogger("dormouse.connector");
    private final @Nullable Level levelBefore = logger.getLevel();
    private final List<String> lines = new ArrayList<>();
    private final Handler handler =
            new Handler() {
                @Override
                public void publish(LogRecord entry) {
                    lines.add(new SimpleFormatter().formatMessage(entry));
                }

                @Override
                public void flush() {}

                @Override
                public void close() {}
            };

    @BeforeEach
    void listen() {
        assumeThat(System.getLogger("dormouse.connector").getClass().getName())
                .as("the JDK's own logging, which this listens to")
                .startsWith("sun.");
        logger.setLevel(Level.WARNING);
        logger.addHandler(handler);
    }

    @AfterEach
    void leave() {
        logger.removeHandler(handler);
        logger.setLevel(levelBefore);
    }

    @Test
    void aReadThatCannotBegin() {
        d.rank().transport().faults().planRead(new ModelFault.FailPost());
        read();
        assertThat(failures()).containsExactly("transfer_setup_failed d1");
    }

    @Test
    void aReadThatFails() {
        d.rank().transport().faults().planRead(new ModelFault.FailHalfWay());
        read();
        assertThat(failures()).containsExactly("transfer_failed d1");
    }

    @Test
    void aReadOfWhichTheTransportCannotSayHowFarItIs() {
        d.rank().transport().faults().planRead(new ModelFault.ThrowOnPoll());
        read();
        assertThat(failures()).containsExactly("transfer_exception d1");
    }

    @Test
    void aReadThatCannotBeReleased() {
        d.rank().transport().faults().planRead(new ModelFault.ThrowOnRelease(3));
        read();
        assertThat(failures()).containsExactly("transfer_release_failed d1");
        assertThat(d.received()).containsExactly("d1");
        assertThat(d.failed()).isEmpty();
    }

    @Test
    void aPeerThatDoesNotAnswer() {
        world.sideChannels().setDeaf(p.address(), true);
        read();
        assertThat(failures())
                .containsExactly("handshake_setup_failed None", "handshake_failed d1");
    }

    @Test
    void aHolderThatCannotBeTold() {
        read();
        KvTransferParams params = p.prefill("p2", 4, new int[] {1}, 2);
        d.rank().transport().faults().failNotifies(1);
        d.decode("d2", 4, params, new int[] {3}, 4);
        world.settle();
        assertThat(failures()).containsExactly("notification_failed d2");
    }

    private void read() {
        KvTransferParams params = p.prefill("p1", 4, new int[] {0}, 1);
        d.decode("d1", 4, params, new int[] {2});
        world.settle();
    }

    /** Type and request of each line that tells a failure. */
    private List<String> failures() {
        return lines.stream()
                .filter(line -> line.startsWith("NIXL transfer failure: "))
                .map(
                        line ->
                                line.replaceAll(
                                        "NIXL transfer failure: (\\w+)\\. .* \\| Context:"
                                                + " \\{'failure_type': '\\1', 'request_id':"
                                                + " '?(\\w+)'?, 'engine_id': 'D',.*",
                                        "$1 $2"))
                .toList();
    }
}
