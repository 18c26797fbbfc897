package dev.dormouse.router.routing;

import java.net.URI;

/** One engine the router knows. Thread-safe. */
public final class Engine {
    /** What an engine can be asked for. */
    public enum Readiness {
        /** Takes requests. */
        READY,
        /** Alive, but asleep or paused. */
        UNREADY,
        /** Dead, silent, or failed. */
        DOWN
    }

    /**
     * What is last known of an engine.
     *
     * @param readiness what it can be asked for
     * @param detail for people
     */
    public record Health(Readiness readiness, String detail) {
        /**
         * What the answers to a check mean.
         *
         * @param ready status of {@code /ready}
         * @param alive status of {@code /health}, which does not matter if {@code ready} is 200
         */
        public static Health ofAnswers(int ready, int alive) {
            if (ready == 200) {
                return new Health(Readiness.READY, "answered 200");
            }
            if (alive != 200) {
                return new Health(Readiness.DOWN, "answered " + alive);
            }
            // vLLM knows no /ready: there, whoever lives is asked.
            return ready == 404
                    ? new Health(Readiness.READY, "answered 200")
                    : new Health(Readiness.UNREADY, "not ready: answered " + ready);
        }

        /** True unless it is dead, silent, or failed. */
        public boolean alive() {
            return readiness != Readiness.DOWN;
        }

        /** True if it takes requests. */
        public boolean ready() {
            return readiness == Readiness.READY;
        }
    }

    private final Role role;
    private final String name;
    private final URI baseUrl;
    private volatile Health health = new Health(Readiness.DOWN, "not checked yet");

    /** The {@code index}-th engine of its role; clients see this name, never the URL. */
    public Engine(Role role, int index, URI baseUrl) {
        this.role = role;
        this.name = role.label() + "-" + index;
        this.baseUrl = baseUrl;
    }

    /** What it is asked for. */
    public Role role() {
        return role;
    }

    /** Its name for clients and metrics. */
    public String name() {
        return name;
    }

    /** The URI of an absolute {@code path} on this engine. */
    public URI resolve(String path) {
        return URI.create(baseUrl + path);
    }

    /** What is last known of it. */
    public Health health() {
        return health;
    }

    /** Replaces what is known of it. */
    public void health(Health value) {
        health = value;
    }
}
