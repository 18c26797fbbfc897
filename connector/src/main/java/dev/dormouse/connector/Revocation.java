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
public record Revocation(String engineId, String instanceId, long epoch, long round) {
    static final int MAX_BYTES = 2 * Subscription.MAX_ID_BYTES + 128;
    private static final int MAX_KEYS = 16;
    private static final String NAME = "dormouse_revoke";
    private static final String ENGINE = "engine_id";
    private static final String INSTANCE = "instance_id";
    private static final String DONE = "done";

    /**
     * What a reader says.
     *
     * @param engineId the engine that answers
     * @param instanceId the process that answers
     * @param done whether none of its ranks reads or will read through the registration
     */
    record Reply(String engineId, String instanceId, boolean done) {}

    /** One name for all of it. */
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

    /** The bytes of an answer. */
    static byte[] answer(String engineId, String instanceId, boolean done) {
        return new WireWriter()
                .map(3)
                .string(ENGINE)
                .string(engineId)
                .string(INSTANCE)
                .string(instanceId)
                .string(DONE)
                .integer(done ? 1 : 0)
                .bytes();
    }

    /**
     * Reads an answer.
     *
     * @throws WireException if the bytes are none
     */
    static Reply reply(byte[] bytes) {
        WireFields in =
                new WireFields("revocation answer", bytes, MAX_BYTES)
                        .strings(Subscription.MAX_ID_BYTES, ENGINE, INSTANCE)
                        .integers(0, 1, DONE)
                        .read(MAX_KEYS, Subscription.MAX_ID_BYTES);
        String engineId = in.string(ENGINE);
        String instanceId = in.string(INSTANCE);
        if (engineId == null || instanceId == null) {
            throw in.fault("it does not say who answers");
        }
        return new Reply(engineId, instanceId, in.integer(DONE, 0) == 1);
    }
}
