package dev.dormouse.connector;

/**
 * What an engine says to a {@link Demand}.
 *
 * @param engineId the engine that answers
 * @param instanceId the process that answers
 * @param done whether all of its ranks have obeyed
 */
record DemandReply(String engineId, String instanceId, boolean done) {
    private static final int MAX_BYTES = 2 * Subscription.MAX_ID_BYTES + 128;
    private static final int MAX_KEYS = 16;
    private static final String ENGINE = "engine_id";
    private static final String INSTANCE = "instance_id";
    private static final String DONE = "done";

    byte[] encode() {
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
    static DemandReply decode(byte[] bytes) {
        WireFields in =
                new WireFields("answer to a demand", bytes, MAX_BYTES)
                        .strings(Subscription.MAX_ID_BYTES, ENGINE, INSTANCE)
                        .integers(0, 1, DONE)
                        .read(MAX_KEYS, Subscription.MAX_ID_BYTES);
        String engineId = in.string(ENGINE);
        String instanceId = in.string(INSTANCE);
        if (engineId == null || instanceId == null) {
            throw in.fault("it does not say who answers");
        }
        return new DemandReply(engineId, instanceId, in.integer(DONE, 0) == 1);
    }

    /**
     * True if the process {@code instance} of {@code engine} has obeyed, or is not there any more:
     * another process of the same engine has its place. An engine of another id says nothing about
     * it.
     */
    boolean ends(String engine, String instance) {
        return engineId.equals(engine) && (done || !instanceId.equals(instance));
    }
}
