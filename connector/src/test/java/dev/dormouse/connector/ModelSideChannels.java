package dev.dormouse.connector;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;

/** All side channels of a model world, without sockets. */
final class ModelSideChannels implements HandshakeClient {
    private final Map<SideChannelAddress, Map<RankId, byte[]>> served = new HashMap<>();
    private final Map<SideChannelAddress, LongSupplier> clocks = new HashMap<>();
    private final Map<SideChannelAddress, HoldBook> books = new HashMap<>();
    private final LongSupplier worldClock;
    private int holdQuestions;
    private int nextPort = 40_000;
    private int fetches;

    ModelSideChannels(LongSupplier worldClock) {
        this.worldClock = worldClock;
    }

    SideChannel open(SideChannelAddress wanted) {
        return open(wanted, worldClock);
    }

    /** Opens one whose engine has a clock of its own. */
    SideChannel open(SideChannelAddress wanted, LongSupplier clock) {
        SideChannelAddress address =
                new SideChannelAddress(
                        wanted.host(), wanted.port() == 0 ? nextPort++ : wanted.port());
        if (served.putIfAbsent(address, Map.of()) != null) {
            throw new SideChannelException("taken: " + address, new IllegalStateException());
        }
        clocks.put(address, clock);
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
            public void answerHolds(HoldBook book) {
                books.put(address, book);
            }

            @Override
            public void close() {
                served.remove(address);
                books.remove(address);
            }
        };
    }

    /** How often a side channel was asked. */
    int fetches() {
        return fetches;
    }

    /** How often a holder was asked about a request. */
    int holdQuestions() {
        return holdQuestions;
    }

    /** Lets an address answer whatever a test wants. */
    void serve(SideChannelAddress address, Map<RankId, byte[]> payloads) {
        served.put(address, Map.copyOf(payloads));
    }

    /** What an address serves. */
    Map<RankId, byte[]> served(SideChannelAddress address) {
        return served.getOrDefault(address, Map.of());
    }

    /** Takes from what an address serves the keys that vLLM does not know. */
    void serveLikeVllm(SideChannelAddress address) {
        Map<RankId, byte[]> plain = new HashMap<>();
        served(address)
                .forEach(
                        (rank, bytes) -> {
                            HandshakePayload payload = HandshakePayload.decode(bytes);
                            plain.put(
                                    rank,
                                    new HandshakePayload(
                                                    payload.compatibilityHash(),
                                                    payload.agentMetadata(),
                                                    0,
                                                    null)
                                            .encode());
                        });
        serve(address, plain);
    }

    @Override
    public HandshakeAnswers ask(
            SideChannelAddress address,
            List<RankId> ranks,
            List<String> requestIds,
            Duration limit) {
        return ask(address, ranks, requestIds, worldClock);
    }

    /** The asking end of an engine with a clock of its own. */
    HandshakeClient client(LongSupplier clock) {
        return (address, ranks, requestIds, _) -> ask(address, ranks, requestIds, clock);
    }

    private HandshakeAnswers ask(
            SideChannelAddress address,
            List<RankId> ranks,
            List<String> requestIds,
            LongSupplier clock) {
        fetches++;
        Map<RankId, byte[]> payloads = served.get(address);
        if (payloads == null) {
            throw new ConnectorException("handshake with " + address + ": connection refused");
        }
        HandshakeAnswers.Collector answers = new HandshakeAnswers.Collector();
        byte[] timestamp =
                new WireWriter()
                        .float64(clocks.getOrDefault(address, worldClock).getAsLong() / 1e9)
                        .bytes();
        long nowNanos = clock.getAsLong();
        for (RankId rank : ranks) {
            answers.addPayload(
                    payloads.getOrDefault(rank, HandshakePayload.refusal("its KV cache is asleep")),
                    timestamp,
                    nowNanos,
                    nowNanos);
        }
        HoldBook book = books.get(address);
        if (book != null && answers.takesHoldQuestions()) {
            for (String id : requestIds) {
                holdQuestions++;
                answers.addHold(id, book.answer(id), nowNanos);
            }
        }
        return answers.answers();
    }
}
