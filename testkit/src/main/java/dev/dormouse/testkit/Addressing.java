package dev.dormouse.testkit;

/** What a read of a {@link ModelFabric} follows. */
public enum Addressing {
    /**
     * The registration: a read gets the pages that lay under the range when it was registered, and
     * fails once its owner has dropped the key. RDMA, mapped memory and imported device memory do
     * so.
     */
    PAGES,
    /**
     * The owner's addresses: a read gets whatever the owner has mapped there <em>now</em>, and
     * zeros where it has nothing, whatever became of the registration. UCX over {@code cma} and
     * {@code tcp} does so.
     */
    VIRTUAL
}
