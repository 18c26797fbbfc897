package dev.dormouse.connector;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Failures in the log, word for word. */
final class TransferFailureLogTest {
    private final TransferFailureLog log = new TransferFailureLog("D");

    @Test
    void aRequestsFailureNamesTypeReasonAndBothEnds() {
        List<Integer> blocks = IntStream.range(1, 13).boxed().toList();
        RemoteSource source = new RemoteSource("P", "pi", "p1", "10.0.0.1", 5600, 1, 1, 4);
        ReadOrder order = new ReadOrder("d1", source, blocks, List.of(7, 8), 0, 48, true);
        assertThat(
                        log.requestLine(
                                new Failure(Failure.Type.TRANSFER_FAILED, "the peer is gone"),
                                order))
                .isEqualTo(
                        "NIXL transfer failure: transfer_failed. the peer is gone | Context:"
                                + " {'failure_type': 'transfer_failed', 'request_id': 'd1',"
                                + " 'engine_id': 'D', 'remote_engine_id': 'P',"
                                + " 'remote_request_id': 'p1', 'remote_host': '10.0.0.1',"
                                + " 'remote_port': 5600, 'num_local_blocks': 12,"
                                + " 'num_remote_blocks': 2, 'local_block_ids_sample':"
                                + " [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],"
                                + " 'remote_registration_epoch': 4}");
    }

    @Test
    void aPeersFailureNamesWhereItWasAskedAndHowManyWait() {
        assertThat(
                        log.peerLine(
                                new Failure(Failure.Type.HANDSHAKE_SETUP_FAILED, "no answer"),
                                "P",
                                new SideChannelAddress("::1", 5600),
                                3))
                .isEqualTo(
                        "NIXL transfer failure: handshake_setup_failed. no answer | Context:"
                                + " {'failure_type': 'handshake_setup_failed', 'request_id': None,"
                                + " 'engine_id': 'D', 'remote_engine_id': 'P',"
                                + " 'remote_host': '::1', 'remote_port': 5600,"
                                + " 'num_waiting_requests': 3}");
    }

    @Test
    void whatAPeerWroteStaysOnOneLine() {
        RemoteSource source = new RemoteSource("P\n[ERROR] x", "pi", "p\t1", "h", 1, 1, 1, 4);
        assertThat(
                        log.requestLine(
                                new Failure(Failure.Type.TRANSFER_SETUP_FAILED, "refused"),
                                ReadOrder.notice("d1", source)))
                .doesNotContain("\n", "\t")
                .contains("'P?[ERROR] x'");
    }
}
