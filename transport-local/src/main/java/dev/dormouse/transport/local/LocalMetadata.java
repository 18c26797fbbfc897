package dev.dormouse.transport.local;

import dev.dormouse.foreign.UnixSocket;
import dev.dormouse.transport.TransportException;
import java.util.List;

/**
 * What an agent tells to be loaded: where it is, and which registrations it had then. What memory
 * that is, it says itself when it is asked.
 *
 * @param host where its socket can be reached
 * @param incarnation this start of this agent
 * @param socketName in the abstract name space
 * @param agentName as in {@link LocalTransportOptions}
 * @param registrations at most {@link #MAX_REGISTRATIONS}
 */
record LocalMetadata(
        HostIdentity host,
        Token incarnation,
        String socketName,
        String agentName,
        List<Token> registrations) {
    static final int MAX_REGISTRATIONS = 64;

    private static final long MAGIC = 0x444f524d4c4f4341L; // DORMLOCA
    private static final int VERSION = 1;

    LocalMetadata {
        registrations = List.copyOf(registrations);
    }

    byte[] encode() {
        WireWriter writer =
                new WireWriter()
                        .number(MAGIC)
                        .one(VERSION)
                        .token(host.boot())
                        .number(host.networkNamespace())
                        .token(incarnation)
                        .text(socketName)
                        .text(agentName)
                        .tokens(registrations);
        return writer.toBytes();
    }

    /**
     * Reads what a peer told.
     *
     * @throws TransportException if it is not that
     */
    static LocalMetadata decode(byte[] bytes) {
        WireReader reader = new WireReader("same-host metadata", bytes);
        if (bytes.length == 0) {
            throw reader.malformed("the peer offers nothing to processes of its host");
        }
        if (reader.number() != MAGIC) {
            throw reader.malformed("it does not start as such");
        }
        int version = reader.one();
        if (version != VERSION) {
            throw reader.malformed("version %d, and not %d".formatted(version, VERSION));
        }
        HostIdentity host = new HostIdentity(reader.token(), reader.number());
        Token incarnation = reader.token();
        String socketName = reader.text(UnixSocket.MAX_NAME_BYTES);
        String agentName = reader.text(LocalTransportOptions.MAX_NAME_BYTES);
        List<Token> registrations = reader.tokens(MAX_REGISTRATIONS);
        reader.requireEnd();
        return new LocalMetadata(host, incarnation, socketName, agentName, registrations);
    }
}
