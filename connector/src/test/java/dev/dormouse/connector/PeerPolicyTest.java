package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** A client's request does not decide whom an engine dials. */
final class PeerPolicyTest {
    private static final RankId RANK = new RankId(0, 0);

    @Test
    void everyPeerButWildcardsAndGroupsIsAllowedByDefault() {
        for (String host : List.of("10.0.0.1", "::1", "127.0.0.1", "fd00::7")) {
            assertThat(refusal(PeerPolicy.ANY, host, 5600, host)).as(host).isNull();
        }
        for (String host :
                List.of("0.0.0.0", "::", "::ffff:0.0.0.0", "0", "224.0.0.1", "ff02::1")) {
            assertThat(refusal(PeerPolicy.ANY, host, 5600, host)).as(host).contains("not for a");
        }
        assertThat(refusal(PeerPolicy.ANY, "any.example", 5600, "0.0.0.0"))
                .as("a name that resolves to a wildcard")
                .contains("every interface");
    }

    @Test
    void networksAndAddressesAreComparedAfterResolution() {
        PeerPolicy policy = PeerPolicy.allowing(List.of("10.1.0.0/17", "192.0.2.7", "fd00:1::/32"));
        for (String allowed : List.of("10.1.127.255", "192.0.2.7", "fd00:1:8::1")) {
            assertThat(refusal(policy, "p.example", 1, allowed)).as(allowed).isNull();
        }
        for (String refused : List.of("10.1.128.0", "192.0.2.6", "fd00:2::1", "127.0.0.1")) {
            assertThat(refusal(policy, "10.1.0.1", 1, refused)).as(refused).contains("192.0.2.7");
        }
        assertThat(refusal(PeerPolicy.allowing(List.of("0.0.0.0/0")), "p", 1, "::1")).isNotNull();
        assertThat(refusal(PeerPolicy.allowing(List.of("0.0.0.0/0")), "p", 1, "0.0.0.0"))
                .as("no rule allows a wildcard")
                .isNotNull();
    }

    @Test
    void aPolicyIsToldAsItWasWritten() {
        assertThat(PeerPolicy.ANY.toString()).startsWith("peers=any ports=1-65535 maxBlocks=");
        assertThat(PeerPolicy.of(List.of("10.0.0.0/8", "Node-7"), List.of(5600), 9).toString())
                .isEqualTo("peers=[10.0.0.0/8, Node-7] ports=5600-5600 maxBlocks=9");
    }

    @Test
    void namesMatchAsRequestsWriteThem() {
        PeerPolicy policy = PeerPolicy.allowing(List.of("*.prefill.local", "Node-7"));
        for (String allowed : List.of("a.prefill.local", "A.B.PREFILL.local", "node-7")) {
            assertThat(refusal(policy, allowed, 1, "10.0.0.1")).as(allowed).isNull();
        }
        for (String refused :
                List.of("prefill.local", "a.prefill.local.evil", "aXprefill.local", "node-77")) {
            assertThat(refusal(policy, refused, 1, "10.0.0.1")).as(refused).isNotNull();
        }
    }

    @Test
    void portsAreARange() {
        PeerPolicy policy = PeerPolicy.ANY.onPorts(5600, 5601);
        assertThat(refusal(policy, "10.0.0.1", 5601, "10.0.0.1")).isNull();
        assertThat(refusal(policy, "10.0.0.1", 5602, "10.0.0.1")).contains("5600-5601");
        assertThat(refusal(policy, "10.0.0.1", 22, "10.0.0.1")).contains("5600-5601");
    }

    @Test
    void rulesThatMeanNothingAreRefusedByName() {
        for (String bad : List.of("", "10.0.0.0/33", "10.0.0.0/", "name/8", "a b", "::/129")) {
            assertThatExceptionOfType(ConnectorException.class)
                    .as(bad)
                    .isThrownBy(() -> PeerPolicy.allowing(List.of(bad)))
                    .withMessageContaining("'" + bad + "'");
        }
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(() -> PeerPolicy.ANY.onPorts(6, 5));
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(() -> PeerPolicy.ANY.withMaxBlocks(0));
    }

    @Test
    void aRefusedPeerIsNotConnectedTo() throws Exception {
        try (ServerSocket peer = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                SideChannelClient client =
                        new SideChannelClient(PeerPolicy.allowing(List.of("10.0.0.0/8")))) {
            SideChannelAddress address = new SideChannelAddress("127.0.0.1", peer.getLocalPort());
            assertThatExceptionOfType(ConnectorException.class)
                    .isThrownBy(
                            () ->
                                    ask(
                                                    client,
                                                    address,
                                                    List.of(RANK),
                                                    List.of(),
                                                    Duration.ofSeconds(9))
                                            .payloads())
                    .withMessageContaining("127.0.0.1")
                    .withMessageContaining("10.0.0.0/8");
            peer.setSoTimeout(50);
            assertThatExceptionOfType(java.net.SocketTimeoutException.class)
                    .isThrownBy(peer::accept);
        }
    }

    @Test
    void theAddressThatWasCheckedIsTheOneThatIsUsed() throws Exception {
        InetAddress good = InetAddress.ofLiteral("127.0.0.1");
        InetAddress wildcard = InetAddress.ofLiteral("0.0.0.0");
        InetAddress[][] answers = {{wildcard, good}, {wildcard}};
        int[] lookups = {0};
        try (ServerSocket peer = new ServerSocket(0, 1, good);
                SideChannelClient client =
                        new SideChannelClient(
                                PeerPolicy.ANY,
                                new NameResolver(_ -> answers[lookups[0]++ == 0 ? 0 : 1]))) {
            SideChannelAddress address = new SideChannelAddress("moves.test", peer.getLocalPort());
            Thread acceptor =
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        try {
                                            peer.accept().close();
                                        } catch (java.io.IOException e) {
                                            throw new java.io.UncheckedIOException(e);
                                        }
                                    });
            assertThatExceptionOfType(ConnectorException.class)
                    .isThrownBy(
                            () ->
                                    ask(
                                                    client,
                                                    address,
                                                    List.of(RANK),
                                                    List.of(),
                                                    Duration.ofSeconds(9))
                                            .payloads());
            acceptor.join();
            assertThat(lookups[0]).isEqualTo(1);
            assertThatExceptionOfType(ConnectorException.class)
                    .isThrownBy(
                            () ->
                                    ask(
                                                    client,
                                                    address,
                                                    List.of(RANK),
                                                    List.of(),
                                                    Duration.ofSeconds(9))
                                            .payloads())
                    .withMessageContaining("every interface");
        }
    }

    @Test
    void aNameThatStandsForEveryInterfaceIsNotAdvertised() {
        assertThatExceptionOfType(ConnectorException.class)
                .isThrownBy(
                        () ->
                                SideChannelAddress.requireReachable(
                                        "all.test",
                                        _ -> new InetAddress[] {InetAddress.ofLiteral("::")}))
                .withMessageContaining("all.test");
        SideChannelAddress.requireReachable(
                "only-peers-know.test",
                host -> {
                    throw new java.net.UnknownHostException(host);
                });
    }

    private static @Nullable String refusal(
            PeerPolicy policy, String host, int port, String resolved) {
        return policy.refusal(new SideChannelAddress(host, port), InetAddress.ofLiteral(resolved));
    }

    private static HandshakeAnswers ask(
            SideChannelClient client,
            SideChannelAddress address,
            List<RankId> ranks,
            List<HoldQuestion> claims,
            Duration limit) {
        return new HandshakeClient(client, System::nanoTime)
                .ask(address, ranks, new OpenClaims(claims), null, limit);
    }
}
