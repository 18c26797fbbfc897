package dev.dormouse.connector;

import org.jspecify.annotations.Nullable;

/** Whether an order may go through what is loaded of its peer. */
final class OrderVerdict {
    private OrderVerdict() {}

    /**
     * Judges.
     *
     * @param usable what is loaded for the order, or null
     */
    static RegistrationIdentity.Verdict of(
            WaitingOrder waiting, RemoteEngine peer, @Nullable LoadedEngine usable) {
        RemoteSource remote = waiting.order().remote();
        SideChannelAddress address = new SideChannelAddress(remote.host(), remote.port());
        if (peer.isRetired(address, remote.instanceId())) {
            return RegistrationIdentity.Verdict.STALE;
        }
        if (usable == null) {
            return waiting.wasAsked()
                    ? RegistrationIdentity.Verdict.STALE
                    : RegistrationIdentity.Verdict.ASK;
        }
        return usable.identity()
                .judge(
                        remote,
                        waiting.wasAsked(),
                        HoldAnswer.isConfirmed(waiting.hold(), usable.identity()));
    }

    /**
     * Judges where holders write. Of an engine of vLLM there is nothing to compare: its push
     * connector cannot sleep, and a restarted one is another agent.
     */
    static RegistrationIdentity.Verdict ofPush(
            WaitingOrder waiting, RemoteEngine peer, @Nullable LoadedEngine usable) {
        RemoteSource remote = waiting.order().remote();
        boolean untold =
                usable != null
                        && usable.identity().instanceId() == null
                        && remote.instanceId() == null
                        && remote.epoch() == 0;
        return untold ? RegistrationIdentity.Verdict.READ : of(waiting, peer, usable);
    }

    /** Why an order is refused that was judged stale; what that says of the peer is remembered. */
    static OrderRules.Next refusal(
            WaitingOrder waiting, RemoteEngine peer, @Nullable LoadedEngine usable) {
        RemoteSource remote = waiting.order().remote();
        if (usable != null && !usable.identity().reaches(remote)) {
            peer.retire(usable.address(), remote.instanceId());
        }
        return new OrderRules.Next.Refuse(
                "the blocks are those of instance "
                        + Excerpt.of(String.valueOf(remote.instanceId()))
                        + " in epoch "
                        + remote.epoch()
                        + ", but the peer is "
                        + (usable == null ? "gone" : usable));
    }
}
