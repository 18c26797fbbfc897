package dev.dormouse.connector;

/** Which way KV takes between engines. */
public enum TransportChoice {
    /** Mapped memory from engines of this host, where that can be; NIXL from all others. */
    AUTO,
    /** NIXL, also on one host. */
    NIXL,
    /** Mapped memory alone; engines of other hosts are refused. */
    LOCAL
}
