package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;

import dev.dormouse.foreign.Libc;
import dev.dormouse.foreign.SocketMessage;
import dev.dormouse.testkit.Await;
import dev.dormouse.testkit.CudaDrivers;
import dev.dormouse.testkit.Seeded;
import dev.dormouse.transport.MemoryKind;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What peers may send to an owner of device memory, before and after it gives some. */
class HostileDeviceReaderTest {
    private static final long BYTES = 8L << 20;
    private static final Limits LIMITS =
            new Limits(
                    Duration.ofSeconds(60),
                    Duration.ofSeconds(20),
                    16,
                    1024,
                    Duration.ofMinutes(1));

    @TempDir private static Path kernels;

    private DeviceNode owner;
    private Registration registration;
    private LocalMetadata metadata;
    private ProcessCounts before;
    private int objects;
    private long misuses;

    @BeforeEach
    void register() {
        owner = new DeviceNode(SegmentAccess.READ, LIMITS, kernels);
        long address = owner.allocate(BYTES);
        registration =
                owner.transport()
                        .register(List.of(new MemoryRange(address, BYTES, MemoryKind.VRAM, 0)));
        metadata = LocalMetadata.decode(owner.transport().metadata().sameHost());
        before = ProcessCounts.now();
        objects = owner.liveObjects();
        misuses = CudaDrivers.misuses();
    }

    @AfterEach
    void close() {
        if (owner != null) { // else this machine cannot have one
            owner.close();
        }
    }

    private Frame.Hello hello() {
        return new Frame.Hello(metadata.incarnation(), "raw", metadata.registrations());
    }

    /** Takes what is given, and closes it. */
    private static void takeGrants(RawPeer raw) {
        boolean complete = false;
        while (!complete) {
            SocketMessage.Received.Message answer = raw.receive();
            Arrays.stream(answer.descriptors()).forEach(Libc::close);
            Frame.Grant grant = (Frame.Grant) Frame.decode(answer.bytes());
            assertThat(answer.descriptors()).hasSize(grant.memory().count());
            complete = grant.last();
        }
    }

    /** A good reader is served, and nothing that others had is held. */
    private void assertServesAndHoldsNothing() {
        try (RawPeer raw = RawPeer.connect(metadata)) {
            raw.send(hello());
            takeGrants(raw);
            raw.send(new Frame.Released());
        }
        assertThat(registration.revoke()).isEmpty();
        registration.readmit();
        assertNothingLeft();
    }

    private void assertNothingLeft() {
        Await.until(
                "nothing is left",
                Duration.ofSeconds(30),
                () -> ProcessCounts.now().equals(before),
                () -> ProcessCounts.now() + ", and it was " + before);
        assertThat(owner.liveObjects()).isEqualTo(objects);
        assertThat(CudaDrivers.misuses()).isEqualTo(misuses);
    }

    /** A frame of any type, its end made up; some come with descriptors. */
    private static void sendAnything(RawPeer raw, SplittableRandom random) {
        byte[] frame = new byte[random.nextInt(1, 300)];
        random.nextBytes(frame);
        frame[0] = (byte) random.nextInt(9);
        if (frame[0] == Frame.MESSAGE || frame[0] == Frame.RELEASED) {
            frame[0] = 0; // these are in order
        }
        int[] along = new int[random.nextInt(3)];
        Arrays.setAll(along, _ -> Libc.createMemoryFile("along", 0));
        raw.send(frame, along);
        Arrays.stream(along).forEach(Libc::close);
    }

    @Test
    void framesOfAnyTypeBeforeTheHelloEndTheConnectionAndNothingElse() {
        Seeded.forAll(
                100,
                random -> {
                    try (RawPeer raw = RawPeer.connect(metadata)) {
                        sendAnything(raw, random);
                        raw.awaitEnd();
                    }
                });
        assertServesAndHoldsNothing();
    }

    @Test
    void aHelloThatChangesOnItsWayGivesNothingThatWasNotAskedFor() {
        byte[] good = hello().encode();
        Seeded.forAll(
                200,
                random -> {
                    byte[] bytes = good.clone();
                    bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
                    try (RawPeer raw = RawPeer.connect(metadata)) {
                        raw.send(bytes);
                        takeWhateverIsGiven(raw);
                    }
                });
        assertServesAndHoldsNothing();
    }

    /** A changed name is a name; all else is refused, or not answered. */
    private static void takeWhateverIsGiven(RawPeer raw) {
        SocketMessage.Received received = raw.next();
        if (received instanceof SocketMessage.Received.Message(byte[] bytes, int[] files, _)) {
            Arrays.stream(files).forEach(Libc::close);
            switch (Frame.decode(bytes)) {
                case Frame.Grant grant -> {
                    assertThat(grant.last()).isTrue();
                    raw.send(new Frame.Released());
                }
                case Frame.Refusal _ -> {
                    assertThat(files).isEmpty();
                    raw.awaitEnd();
                }
                case Frame frame -> throw new AssertionError("answered " + frame);
            }
        }
    }

    @Test
    void framesOfAnyTypeFromAHolderAreItsEndAndItHoldsTheMemoryStill() {
        Seeded.forAll(
                30,
                random -> {
                    try (RawPeer raw = RawPeer.connect(metadata)) {
                        raw.send(hello());
                        takeGrants(raw);
                        sendAnything(raw, random);
                        raw.awaitEnd();
                    }
                });
        assertThat(registration.revoke()).hasSize(30); // this process has not ended
        assertThat(owner.transport().rejectedMessages()).isEqualTo(30);
        int holding = ProcessCounts.now().descriptors();
        owner.transport().close();
        assertThat(ProcessCounts.now().descriptors()).isLessThanOrEqualTo(holding - 30);
    }
}
