package dev.dormouse.connector;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A holder's demand that nobody read any more through a registration whose pages are about to go:
 * {@code dormouse_revoke}, {@code {engine_id, instance_id, epoch, round}} in the shape of {@link
 * OwnQuestion}. Asked again and again until the reader says that it is done.
 *
 * @param engineId the holder
 * @param instanceId its process
 * @param epoch the newest registration that goes; older ones have gone
 * @param round tells this demand from others for the same registration
 */
public record Revocation(String engineId, String instanceId, long epoch, long round)
        implements Demand {
    private static final int MAX_KEYS = 16;
    private static final String NAME = "dormouse_revoke";
    private static final String ENGINE = "engine_id";
    private static final String INSTANCE = "instance_id";

    @Override
    public String id() {
        return String.join("\n", engineId, instanceId, Long.toString(epoch), Long.toString(round));
    }

    /** True if what is loaded describes pages that go. */
    boolean covers(RegistrationIdentity loaded) {
        return Objects.equals(loaded.instanceId(), instanceId) && loaded.epoch() <= epoch;
    }

    byte[] encode() {
        return OwnQuestion.encode(
                NAME,
                new WireWriter()
                        .map(4)
                        .string(ENGINE)
                        .string(engineId)
                        .string(INSTANCE)
                        .string(instanceId)
                        .string("epoch")
                        .integer(epoch)
                        .string("round")
                        .integer(round)
                        .bytes());
    }

    /**
     * The revocation, or null if the bytes are another question.
     *
     * @throws WireException if they are no question at all
     */
    static @Nullable Revocation decode(byte[] bytes) {
        byte[] body = OwnQuestion.body(NAME, bytes);
        if (body == null) {
            return null;
        }
        WireFields in =
                new WireFields("revocation", body, SideChannelListener.MAX_MESSAGE)
                        .strings(Subscription.MAX_ID_BYTES, ENGINE, INSTANCE)
                        .integers(0, Long.MAX_VALUE, "epoch", "round")
                        .read(MAX_KEYS, Subscription.MAX_ID_BYTES);
        String engineId = in.string(ENGINE);
        String instanceId = in.string(INSTANCE);
        long epoch = in.integer("epoch", -1);
        if (engineId == null || instanceId == null || epoch < 0) {
            throw in.fault("it does not say what is revoked");
        }
        return new Revocation(engineId, instanceId, epoch, in.integer("round", 0));
    }
}
