package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** What a reader remembers of one peer. */
final class RemoteEngineTest {
    private static final SideChannelAddress ADDRESS = new SideChannelAddress("127.0.0.1", 5600);
    private static final long NOW = TimeUnit.SECONDS.toNanos(100);

    private final ModelWorld world = new ModelWorld();
    private final ModelEngine d = world.start("D");
    private final RemoteEngine engine = new RemoteEngine("P", ADDRESS, NOW);

    @Test
    void aPeerThatIsLostTwiceIsLeftAloneUnlessARequestNamesANewerOne() {
        for (int i = 0; i < 2; i++) {
            engine.setLoaded(loaded("pi", 4));
            engine.invalidate(NOW);
            engine.setLoaded(null);
        }
        assertThat(engine.mustBackOff(null, NOW)).isTrue();
        assertThat(engine.mustBackOff(request("pi", 4), NOW)).isTrue();
        assertThat(engine.mustBackOff(request("pi", 5), NOW)).as("newer epoch").isFalse();
        assertThat(engine.mustBackOff(request("other", 4), NOW)).as("other process").isFalse();
        assertThat(engine.mustBackOff(request(null, 4), NOW)).as("unsaid process").isTrue();
        long later = NOW + Duration.ofMinutes(10).toNanos();
        assertThat(engine.mustBackOff(request("pi", 4), later)).isFalse();
        assertThat(engine.isForgettable(NOW)).isFalse();
        assertThat(engine.isForgettable(later)).isTrue();
    }

    @Test
    void whatIsWorthRememberingIsNotForgotten() {
        assertThat(engine.isForgettable(NOW)).isTrue();
        engine.setLoaded(loaded("pi", 4));
        assertThat(engine.isForgettable(NOW)).isFalse();
        engine.setLoaded(null);
        engine.waiting.add(waiting("d1"));
        assertThat(engine.isForgettable(NOW)).isFalse();
        engine.waiting.clear();
        engine.retire(ADDRESS, "pi");
        assertThat(engine.isForgettable(NOW)).isFalse();
    }

    @Test
    void theLastSixteenProcessesThatAreGoneAreRemembered() {
        for (int i = 0; i < 16; i++) {
            engine.retire(ADDRESS, "pi" + i);
            engine.retire(ADDRESS, "pi" + i);
        }
        assertThat(engine.isRetired(ADDRESS, "pi0")).isTrue();
        engine.retire(ADDRESS, "pi16");
        assertThat(engine.isRetired(ADDRESS, "pi0")).isFalse();
        assertThat(engine.isRetired(ADDRESS, "pi1")).isTrue();
        assertThat(engine.isRetired(ADDRESS, "pi16")).isTrue();
        assertThat(engine.isRetired(new SideChannelAddress("127.0.0.1", 5601), "pi16")).isFalse();
        assertThat(engine.isRetired(ADDRESS, null)).isFalse();
    }

    @Test
    void whatIsReadFromIsNotDropped() {
        LoadedEngine loaded = loaded("pi", 4);
        loaded.addTransfer(1);
        assertThat(loaded.transfersInFlight()).isEqualTo(1);
        assertThatIllegalStateException().isThrownBy(loaded::close);
        engine.setLoaded(loaded);
        assertThat(engine.isIdle()).isFalse();
        loaded.addTransfer(-1);
        assertThat(engine.isIdle()).isTrue();
        loaded.close();
    }

    @Test
    void aRevocationEndsWhatWasFetchedOfItAndNothingElse() {
        engine.fetched = fetched("pi", 5);
        engine.revoke(new Revocation("P", "pi", 4, 0));
        assertThat(engine.fetched).as("a newer registration").isNotNull();
        engine.revoke(new Revocation("P", "pi", 5, 0));
        assertThat(engine.fetched).isNull();
        engine.setLoaded(loaded("pi", 5));
        engine.revoke(new Revocation("P", "pi", 4, 0));
        assertThat(engine.usable()).isNotNull();
        engine.revoke(new Revocation("P", "pi", 5, 0));
        assertThat(engine.usable()).isNull();
    }

    @Test
    void whatIsPendingIsToldWithHowLongItHasBeen() {
        engine.waiting.add(waiting("d1"));
        engine.handshake =
                new Handshake(
                        ADDRESS,
                        NOW,
                        NOW,
                        List.of(),
                        new OpenClaims(List.of()),
                        new CompletableFuture<>());
        assertThat(engine.describe(NOW + TimeUnit.SECONDS.toNanos(3)))
                .satisfiesExactly(
                        first -> assertThat(first).contains("handshake").endsWith("for PT3S"),
                        second -> assertThat(second).contains("d1").endsWith("for PT3S"));
    }

    private LoadedEngine loaded(@Nullable String instanceId, long epoch) {
        return LoadedEngine.load(d.rank().transport(), fetched(instanceId, epoch), _ -> {});
    }

    private static FetchedEngine fetched(@Nullable String instanceId, long epoch) {
        return new FetchedEngine(
                "P",
                ADDRESS,
                new RegistrationIdentity(instanceId, epoch, epoch),
                true,
                RankMapping.of(0, 1, 1, 2),
                List.of(),
                null);
    }

    private static RemoteSource request(@Nullable String instanceId, long epoch) {
        return new RemoteSource("P", instanceId, "p1", "127.0.0.1", 5600, 1, 1, epoch);
    }

    private static WaitingOrder waiting(String requestId) {
        return new WaitingOrder(ReadOrder.notice(requestId, request("pi", 4)), NOW, NOW);
    }
}
