package dev.dormouse.connector;

import java.util.List;
import java.util.Locale;

/**
 * Logs failures in the form of vLLM's NIXL connector, which dashboards and alerts look for: {@code
 * NIXL transfer failure: <type>. <reason> | Context: {…}}.
 *
 * @param engineId this engine
 */
record TransferFailureLog(String engineId) {
    private static final System.Logger LOG = System.getLogger("dormouse.connector");
    private static final int SAMPLE = 10;

    /** Something failed for a request. */
    void request(Failure failure, PeerOrder order) {
        LOG.log(System.Logger.Level.WARNING, "{0}", requestLine(failure, order));
    }

    /** Something failed with a peer, whatever requests wait for it. */
    void peer(Failure failure, String remoteEngineId, SideChannelAddress address, int waiting) {
        LOG.log(
                System.Logger.Level.WARNING,
                "{0}",
                peerLine(failure, remoteEngineId, address, waiting));
    }

    String requestLine(Failure failure, PeerOrder order) {
        RemoteSource remote = order.remote();
        return line(
                failure,
                quoted(order.requestId()),
                "'remote_engine_id': "
                        + quoted(remote.engineId())
                        + ", 'remote_request_id': "
                        + quoted(remote.requestId())
                        + at(remote.host(), remote.port())
                        + ", 'num_local_blocks': "
                        + order.localBlocks().size()
                        + ", 'num_remote_blocks': "
                        + order.remoteBlocks().size()
                        + ", 'local_block_ids_sample': "
                        + sample(order.localBlocks())
                        + ", 'remote_registration_epoch': "
                        + remote.epoch());
    }

    String peerLine(
            Failure failure, String remoteEngineId, SideChannelAddress address, int waiting) {
        return line(
                failure,
                "None",
                "'remote_engine_id': "
                        + quoted(remoteEngineId)
                        + at(address.host(), address.port())
                        + ", 'num_waiting_requests': "
                        + waiting);
    }

    private String line(Failure failure, String requestId, String context) {
        String type = failure.type().name().toLowerCase(Locale.ROOT);
        return "NIXL transfer failure: %s. %s | Context: {'failure_type': '%s', 'request_id': %s, 'engine_id': %s, %s}"
                .formatted(type, failure.reason(), type, requestId, quoted(engineId), context);
    }

    private static String at(String host, int port) {
        return ", 'remote_host': " + quoted(host) + ", 'remote_port': " + port;
    }

    private static String quoted(String value) {
        return Excerpt.of(value);
    }

    private static List<Integer> sample(List<Integer> blocks) {
        return blocks.subList(0, Math.min(SAMPLE, blocks.size()));
    }
}
