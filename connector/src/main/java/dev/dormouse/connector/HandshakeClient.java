package dev.dormouse.connector;

import java.io.IOException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A reader's part of the conversation on a holder's side channel. Called on handshake threads.
 *
 * @param dialer connects to the holder
 * @param nanoClock the asking rank's clock
 */
record HandshakeClient(SideChannel.Dialer dialer, LongSupplier nanoClock) {
    /** How often a holder may publish anew while it is asked. */
    private static final int ATTEMPTS = 3;

    /**
     * The answers for {@code ranks}, undecoded, in their order. A holder of our own kind also says
     * whether it holds what is claimed, and takes the reader's subscription. Waits.
     *
     * @param subscriber who the holder shall tell before it sleeps; null for nobody
     * @param limit of the whole conversation
     * @throws ConnectorException if there is no answer in time, or not one of the right shape
     */
    HandshakeAnswers ask(
            SideChannelAddress address,
            List<RankId> ranks,
            OpenClaims claims,
            Subscription.@Nullable Reader subscriber,
            Duration limit) {
        try (SideChannel.Conversation conversation = dialer.dial(address, limit)) {
            HandshakeAnswers.Collector answers = new HandshakeAnswers.Collector();
            for (int attempt = 1; !fetch(conversation, ranks, subscriber, answers); attempt++) {
                if (attempt == ATTEMPTS) {
                    throw new ConnectorException(
                            "handshake with "
                                    + address
                                    + ": it published anew each of "
                                    + ATTEMPTS
                                    + " times");
                }
                answers = new HandshakeAnswers.Collector();
            }
            if (answers.isOfOurKind()) {
                claim(conversation, claims, answers);
            }
            return answers.answers();
        } catch (IOException e) {
            throw failure(address, limit, e);
        }
    }

    /**
     * Claims requests of a holder of our own kind that is known already. Waits.
     *
     * @return what it says of each
     * @throws ConnectorException if there is no answer in time, or not one of the right shape
     */
    Map<HoldQuestion, HoldAnswer> claim(
            SideChannelAddress address, OpenClaims claims, Duration limit) {
        try (SideChannel.Conversation conversation = dialer.resume(address, limit)) {
            HandshakeAnswers.Collector answers = new HandshakeAnswers.Collector();
            claim(conversation, claims, answers);
            Map<HoldQuestion, HoldAnswer> holds = answers.answers().holds();
            if (holds.values().stream().allMatch(HoldAnswer::knowsRequest)) {
                conversation.leave(); // else the address may be another engine's by now
            }
            return holds;
        } catch (IOException e) {
            throw failure(address, limit, e);
        }
    }

    /**
     * Asks a peer of our own kind questions of this product's. Waits.
     *
     * @return its answers, in order
     * @throws ConnectorException if they do not come in time
     */
    List<byte[]> askAll(SideChannelAddress address, List<byte[]> questions, Duration limit) {
        try (SideChannel.Conversation conversation = dialer.dial(address, limit)) {
            List<byte[]> answers = new ArrayList<>();
            for (byte[] question : questions) {
                answers.add(conversation.ask(question).body());
            }
            return answers;
        } catch (IOException e) {
            throw failure(address, limit, e);
        }
    }

    private void claim(
            SideChannel.Conversation conversation,
            OpenClaims claims,
            HandshakeAnswers.Collector answers)
            throws IOException {
        for (List<HoldQuestion> next = claims.next(); !next.isEmpty(); next = claims.next()) {
            for (HoldQuestion claim : next) {
                long sentNanos = nanoClock.getAsLong();
                answers.addHold(claim, conversation.ask(claim.encode()).body(), sentNanos);
            }
        }
    }

    private static ConnectorException failure(
            SideChannelAddress address, Duration limit, IOException cause) {
        String what =
                cause instanceof SocketTimeoutException
                        ? "no answer within "
                                + limit.truncatedTo(ChronoUnit.MILLIS)
                                + "; is the engine up, and is this its side channel?"
                        : cause.getMessage();
        return new ConnectorException("handshake with " + address + ": " + what, cause);
    }

    /** False if the payloads were replaced before the holder took the subscription to them. */
    private boolean fetch(
            SideChannel.Conversation conversation,
            List<RankId> ranks,
            Subscription.@Nullable Reader subscriber,
            HandshakeAnswers.Collector answers)
            throws IOException {
        for (RankId rank : ranks) {
            long sentNanos = nanoClock.getAsLong();
            SideChannel.Answer answer = conversation.ask(HandshakeRequest.encode(rank));
            answers.addPayload(answer.body(), answer.timestamp(), sentNanos, nanoClock.getAsLong());
        }
        long epoch = answers.epochToSubscribe();
        if (subscriber == null || epoch == 0) {
            return true;
        }
        byte[] subscription = new Subscription(subscriber, epoch).encode();
        return Subscription.isAccepted(conversation.ask(subscription).body());
    }
}
