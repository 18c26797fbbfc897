package dev.dormouse.router;

import java.net.URI;

/** One engine the router knows. Thread-safe. */
final class Engine {
    /** What an engine can be asked for. */
    enum Readiness {
        /** Takes requests. */
        READY,
        /** Alive, but asleep or paused. */
        UNREADY,
        /** Dead, silent, or failed. */
        DOWN
    }

    /** What is last known of an engine; {@code detail} is for people. */
    record Health(Readiness readiness, String detail) {
        boolean alive() {
            return readiness != Readiness.DOWN;
        }

        boolean ready() {
            return readiness == Readiness.READY;
        }
    }

    private final Role role;
    private final String name;
    private final URI baseUrl;
    private volatile Health health = new Health(Readiness.DOWN, "not checked yet");

    /** The {@code index}-th engine of its role; clients see this name, never the URL. */
    Engine(Role role, int index, URI baseUrl) {
        this.role = role;
        this.name = role.label() + "-" + index;
        this.baseUrl = baseUrl;
    }

    Role role() {
        return role;
    }

    String name() {
        return name;
    }

    /** The URI of an absolute {@code path} on this engine. */
    URI resolve(String path) {
        return URI.create(baseUrl + path);
    }

    Health health() {
        return health;
    }

    void health(Health value) {
        health = value;
    }
}
