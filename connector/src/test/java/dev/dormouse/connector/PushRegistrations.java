package dev.dormouse.connector;

import java.util.Arrays;

/** Makes registrations by hand. */
final class PushRegistrations {
    private PushRegistrations() {}

    /**
     * A registration of {@code waiting} as it is registered now.
     *
     * @param tells whether it tells what vLLM does not: who waits, in which epoch, for which
     *     request
     */
    static PushRegistration of(
            ModelEngine waiting,
            String id,
            ModelEngine holder,
            String holderRequest,
            int[] blocks,
            boolean tells,
            ModelWorld world) {
        return new PushRegistration(
                new RemoteSource(
                        waiting.config().engineId(),
                        tells ? waiting.config().instanceId() : null,
                        id,
                        waiting.address().host(),
                        waiting.address().port(),
                        1,
                        1,
                        tells ? waiting.scheduler().epoch() : 0,
                        new RemoteLease(world.nanoTime() / 1e9 + 480, 480)),
                Arrays.stream(blocks).boxed().toList(),
                new RemoteSource(
                        holder.config().engineId(),
                        null,
                        holderRequest,
                        holder.address().host(),
                        holder.address().port(),
                        1,
                        1,
                        0));
    }
}
