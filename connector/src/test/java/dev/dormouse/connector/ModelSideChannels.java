package dev.dormouse.connector;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** All side channels of a model world, without sockets. */
final class ModelSideChannels implements HandshakeClient {
    private final Map<SideChannelAddress, Map<RankId, byte[]>> served = new HashMap<>();
    private int nextPort = 40_000;
    private int fetches;

    SideChannel open(SideChannelAddress wanted) {
        SideChannelAddress address =
                new SideChannelAddress(
                        wanted.host(), wanted.port() == 0 ? nextPort++ : wanted.port());
        if (served.putIfAbsent(address, Map.of()) != null) {
            throw new SideChannelException("taken: " + address, new IllegalStateException());
        }
        return new SideChannel() {
            @Override
            public int port() {
                return address.port();
            }

            @Override
            public void serve(Map<RankId, byte[]> payloads) {
                served.put(address, Map.copyOf(payloads));
            }

            @Override
            public void close() {
                served.remove(address);
            }
        };
    }

    /** How often a side channel was asked. */
    int fetches() {
        return fetches;
    }

    /** Lets an address answer whatever a test wants. */
    void serve(SideChannelAddress address, Map<RankId, byte[]> payloads) {
        served.put(address, Map.copyOf(payloads));
    }

    /** What an address serves. */
    Map<RankId, byte[]> served(SideChannelAddress address) {
        return served.getOrDefault(address, Map.of());
    }

    @Override
    public List<byte[]> fetch(SideChannelAddress address, List<RankId> ranks, Duration limit) {
        fetches++;
        Map<RankId, byte[]> payloads = served.get(address);
        if (payloads == null) {
            throw new ConnectorException("handshake with " + address + ": connection refused");
        }
        List<byte[]> answers = new ArrayList<>();
        for (RankId rank : ranks) {
            answers.add(
                    payloads.getOrDefault(
                            rank, HandshakePayload.refusal("its KV cache is asleep")));
        }
        return answers;
    }
}
