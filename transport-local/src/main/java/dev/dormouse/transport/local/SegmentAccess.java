package dev.dormouse.transport.local;

/** What peers may do with an agent's memory. */
public enum SegmentAccess {
    /** Peers read: for connectors whose readers pull. */
    READ,
    /** Peers read and write: for connectors whose holders push. */
    READ_WRITE
}
