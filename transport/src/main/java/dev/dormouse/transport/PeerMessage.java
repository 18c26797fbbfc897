package dev.dormouse.transport;

/**
 * A message from a peer.
 *
 * @param agentName the sender, as the transport knows it
 * @param bytes untrusted content
 */
@SuppressWarnings("ArrayRecordComponent") // handed over once, never compared
public record PeerMessage(String agentName, byte[] bytes) {}
