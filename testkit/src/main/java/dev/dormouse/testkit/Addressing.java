package dev.dormouse.testkit;

/** What a transfer of a {@link ModelFabric} follows. */
public enum Addressing {
    /**
     * The registration: a transfer meets the pages that lay under the range when it was registered,
     * and fails once their owner has dropped the key. RDMA does so.
     */
    PAGES,
    /**
     * The reader's own mapping, between processes of one host: a loaded peer maps the pages that
     * its owner has at that moment, keeps them in use whatever the owner does with its addresses,
     * and meets them until it is closed or obeys a revocation. Shared memory and imported device
     * memory do so.
     */
    MAPPED,
    /**
     * The owner's addresses: a transfer meets whatever the owner has mapped there <em>now</em>,
     * whatever became of the registration; where it has nothing, zeros are read and what is written
     * is lost. UCX over {@code cma} and {@code tcp} does so.
     */
    VIRTUAL
}
