package dev.dormouse.transport;

import java.util.List;

/**
 * The agent of one rank: registers the rank's memory, loads peers, and reads and writes their
 * blocks.
 *
 * <p>A registration binds to the <em>pages</em> that lie under an address when it is made. After
 * the pages were replaced, a registration that was not renewed still works and moves the old pages'
 * bytes, without an error. So is everything that is derived from it: {@link #metadata()} given to
 * peers, and prepared lists.
 *
 * <p>Not thread-safe, except for {@link #prepareLoad}: one worker thread owns a transport. No call
 * waits for a peer, except {@link #load}, which may take a few milliseconds if it was not prepared.
 */
public interface KvTransport extends AutoCloseable {
    /** The transport's name as in configuration and reports, such as {@code nixl}. */
    String name();

    /** This agent's name; unique among all agents of a deployment. */
    String agentName();

    /**
     * Registers memory for remote reads and for local use.
     *
     * @throws TransportException if the memory cannot be registered; nothing is registered then
     */
    Registration register(List<MemoryRange> ranges);

    /**
     * What a peer needs to {@link #load} this agent: how to connect, and the keys of all current
     * registrations.
     */
    TransportMetadata metadata();

    /**
     * Does what takes long in a {@link #load} of the same metadata, as far as the transport can:
     * connects, waits for the peer, maps its memory. The peer counts as one that uses the memory
     * then, and can have it taken back; what is not loaded for long is given back. Nothing can be
     * read before the load, which reports all failures. To be called by any thread, but none that
     * must not wait.
     *
     * @param metadata untrusted bytes
     */
    default void prepareLoad(TransportMetadata metadata) {}

    /**
     * Loads a peer from its {@link #metadata()}.
     *
     * @param metadata untrusted bytes
     * @throws PeerLoadedException if a peer of the same agent name is loaded: {@link
     *     RemotePeer#close() close} that one first
     * @throws MemoryWithdrawnException if the peer takes that memory back, or has it no more
     * @throws TransportException if the bytes are unusable, or for no transport of this agent's. A
     *     refusal leaves loaded peers as they were.
     */
    RemotePeer load(TransportMetadata metadata);

    /**
     * Prepares blocks of this agent's registered memory.
     *
     * @return the blocks of all rows one behind the other, addressed by index
     */
    BlockList prepareLocal(List<BlockRow> rows);

    /**
     * Prepares blocks of a loaded peer.
     *
     * @throws TransportException if a block is outside what the peer registered
     */
    BlockList prepareRemote(RemotePeer peer, List<BlockRow> rows);

    /**
     * Starts to read remote blocks into local ones: remote block {@code remoteIndices[i]} into
     * local block {@code localIndices[i]}.
     *
     * @param notification delivered to the peer once all data have arrived
     * @throws TransportException if the read could not be started
     * @throws IllegalArgumentException if the index arrays differ in length, are empty, or name
     *     blocks that do not exist
     */
    Transfer read(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification);

    /**
     * Starts to write local blocks into remote ones: local block {@code localIndices[i]} into
     * remote block {@code remoteIndices[i]}. Otherwise like {@link #read}: it is released only when
     * nothing of it can reach the remote blocks any more.
     *
     * @param notification delivered to the peer once all data have arrived there
     * @throws TransportException if the write could not be started
     * @throws IllegalArgumentException as for a read
     */
    Transfer write(
            BlockList local,
            int[] localIndices,
            BlockList remote,
            int[] remoteIndices,
            byte[] notification);

    /**
     * Has something run whenever a transfer may have ended, so that its owner need not poll to hear
     * of it soon. By any thread, perhaps once too often, and never by a transport whose transfers
     * only end while they are polled: whoever relies on the end goes on polling.
     *
     * @param wake must neither wait nor throw; takes the place of what was given before
     */
    default void wakeWith(Runnable wake) {}

    /**
     * Sends a message to a loaded peer.
     *
     * @throws TransportException if it could not be sent
     */
    void notify(RemotePeer peer, byte[] message);

    /**
     * Takes the messages that arrived since the last call, in order per peer. Also drives this
     * agent's connections.
     */
    List<PeerMessage> messages();

    /**
     * How many messages were dropped since the start, because they were too long or came from
     * nobody. Does not throw.
     */
    long rejectedMessages();

    /** Ends the agent: transfers, lists, peers and registrations first. Idempotent. */
    @Override
    void close();
}
