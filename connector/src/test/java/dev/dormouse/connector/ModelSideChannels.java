package dev.dormouse.connector;

import java.io.IOException;
import java.net.ConnectException;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.LongSupplier;

/** All side channels of a model world, without sockets. */
final class ModelSideChannels {
    private final Map<SideChannelAddress, SideChannelDesk> desks = new HashMap<>();
    private final Set<SideChannelAddress> deaf = new HashSet<>();
    private final Map<SideChannelAddress, SideChannelAddress> holders = new HashMap<>();
    private int holdQuestions;
    private int revocationQuestions;
    private int nextPort = 40_000;
    private int fetches;
    private int conversations;
    private Runnable afterFetch = () -> {};
    private Runnable afterClaim = () -> {};

    SideChannel open(SideChannelAddress wanted, SideChannelDesk desk) {
        SideChannelAddress address =
                new SideChannelAddress(
                        wanted.host(), wanted.port() == 0 ? nextPort++ : wanted.port());
        if (desks.putIfAbsent(address, desk) != null) {
            throw new SideChannelException("taken: " + address, new IllegalStateException());
        }
        return new SideChannel() {
            @Override
            public int port() {
                return address.port();
            }

            @Override
            public void close() {
                desks.remove(address, desk);
            }
        };
    }

    /** What a connector works with that needs these side channels only. */
    Surroundings surroundings(LongSupplier nanoClock, long epochBase) {
        return new Surroundings(
                nanoClock, epochBase, this::open, this::dial, new ModelExecutor(), () -> {});
    }

    /** How many conversations there were, about whatever. */
    int conversations() {
        return conversations;
    }

    /** How often a side channel was asked for payloads. */
    int fetches() {
        return fetches;
    }

    /** How often a request was claimed. */
    int holdQuestions() {
        return holdQuestions;
    }

    /** What happens while the next conversation goes on, once it was given a payload. */
    void duringNextFetch(Runnable action) {
        afterFetch = action;
    }

    /** What happens while the next conversation goes on, once a claim of its was answered. */
    void duringNextClaim(Runnable action) {
        afterClaim = action;
    }

    /** How often a reader was told of a revocation. */
    int revocationQuestions() {
        return revocationQuestions;
    }

    /** Nobody reaches an address any more, or again. */
    void setDeaf(SideChannelAddress address, boolean value) {
        if (value) {
            deaf.add(address);
        } else {
            deaf.remove(address);
        }
    }

    /** Lets an address answer whatever a test wants. */
    void serve(SideChannelAddress address, Map<RankId, byte[]> payloads) {
        desks.computeIfAbsent(address, _ -> desk()).serve(epoch(payloads), payloads);
    }

    /** Lets an address answer whatever a test wants, and claims as {@code holder} does. */
    void serveFor(
            SideChannelAddress holder, SideChannelAddress address, Map<RankId, byte[]> payloads) {
        serve(address, payloads);
        holders.put(address, holder);
    }

    /** Another name of an address. */
    void alias(SideChannelAddress name, SideChannelAddress address) {
        desks.put(name, Objects.requireNonNull(desks.get(address)));
    }

    /** What an address serves. */
    Map<RankId, byte[]> served(SideChannelAddress address) {
        SideChannelDesk desk = desks.get(address);
        return desk == null ? Map.of() : desk.payloads();
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

    SideChannel.Conversation dial(SideChannelAddress address, Duration limit) throws IOException {
        conversations++;
        SideChannelDesk desk = desks.get(address);
        if (desk == null || deaf.contains(address)) {
            fetches++;
            throw new ConnectException("connection refused");
        }
        SideChannelDesk.Session session = desk.connected();
        return new SideChannel.Conversation() {
            private boolean fetched;

            @Override
            public SideChannel.Answer ask(byte[] question) throws IOException {
                if (!count(question) && !fetched) {
                    fetched = true;
                    fetches++;
                }
                SideChannelAddress holder = holders.get(address);
                SideChannel.Answer answer =
                        holder != null && HoldQuestion.decode(question) != null
                                ? dial(holder, limit).ask(question)
                                : session.answer(question);
                if (answer == null) {
                    throw new IOException("no answer within " + limit);
                }
                meanwhile(question);
                return answer;
            }

            @Override
            public void close() {}
        };
    }

    private void meanwhile(byte[] question) {
        Runnable action = () -> {};
        if (HoldQuestion.decode(question) != null) {
            action = afterClaim;
            afterClaim = () -> {};
        } else if (Revocation.decode(question) == null && Subscription.decode(question) == null) {
            action = afterFetch;
            afterFetch = () -> {};
        }
        action.run();
    }

    /** True if it is another question than that for payloads. */
    private boolean count(byte[] question) {
        if (HoldQuestion.decode(question) != null) {
            holdQuestions++;
            return true;
        }
        if (Revocation.decode(question) != null) {
            revocationQuestions++;
            return true;
        }
        return false;
    }

    private static SideChannelDesk desk() {
        return new SideChannelDesk("nobody", "nobody", () -> 0, new HoldBook("nobody", () -> 0));
    }

    private static long epoch(Map<RankId, byte[]> payloads) {
        for (byte[] payload : payloads.values()) {
            try {
                return HandshakePayload.decode(payload).epoch();
            } catch (WireException hostile) {
                assert hostile.getMessage() != null;
            }
        }
        return 0;
    }
}
