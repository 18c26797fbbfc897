package dev.dormouse.transport.nixl;

import java.util.Map;

/** Transports of UCX that work between two processes of any machine. */
enum Tls {
    /** The reader copies out of the owner's memory by a system call; messages go over TCP. */
    CMA("cma,tcp,self"),
    /** The owner's process answers reads from its own memory. */
    TCP("tcp");

    private final String setting;

    Tls(String setting) {
        this.setting = setting;
    }

    /** What a process needs to use it; other transports are then not used. */
    Map<String, String> environment() {
        return Map.of("UCX_TLS", setting, "UCX_LOG_LEVEL", "error");
    }
}
