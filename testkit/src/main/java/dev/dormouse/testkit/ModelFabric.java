package dev.dormouse.testkit;

import dev.dormouse.transport.PeerMessage;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The network between {@link ModelTransport}s. By default it has the semantics of RDMA: a read
 * names a key, the key names a registration, and the registration holds the <em>pages</em> that lay
 * under the range when it was made. Others follow addresses, see {@link Addressing}.
 *
 * <p>Thread-safe: its monitor guards all transports, so that engines on several threads can share
 * it. Time comes from outside.
 */
public final class ModelFabric {
    private final LongSupplier nanoClock;
    private final Addressing addressing;
    private final Map<String, ModelTransport> agents = new HashMap<>();
    private final AtomicLong identities = new AtomicLong(1);

    /** An empty network like RDMA; delays are measured with {@code nanoClock}. */
    public ModelFabric(LongSupplier nanoClock) {
        this(nanoClock, Addressing.PAGES);
    }

    /** An empty network; delays are measured with {@code nanoClock}. */
    public ModelFabric(LongSupplier nanoClock, Addressing addressing) {
        this.nanoClock = nanoClock;
        this.addressing = addressing;
    }

    /** Starts an agent whose registrations take their pages from {@code memory}. */
    public synchronized ModelTransport open(String agentName, ModelMemory memory) {
        ModelTransport transport = new ModelTransport(this, agentName, memory);
        if (agents.putIfAbsent(agentName, transport) != null) {
            throw new IllegalStateException("agent " + agentName + " runs already");
        }
        return transport;
    }

    /** Ends an agent without a farewell, as kill -9 does. */
    public synchronized void kill(String agentName) {
        ModelTransport gone = agents.remove(agentName);
        if (gone == null) {
            throw new IllegalStateException("agent " + agentName + " does not run");
        }
        gone.die();
    }

    /** Puts a message into an agent's inbox: late, duplicate or hostile ones. */
    public synchronized void inject(String toAgent, PeerMessage message) {
        ModelTransport to = agents.get(toAgent);
        if (to == null) {
            throw new IllegalStateException("agent " + toAgent + " does not run");
        }
        to.deliver(message);
    }

    Addressing addressing() {
        return addressing;
    }

    long nanoTime() {
        return nanoClock.getAsLong();
    }

    long nextIdentity() {
        return identities.getAndIncrement();
    }

    /** The agent of this name, if it is the same incarnation. */
    synchronized @Nullable ModelTransport find(String agentName, long incarnation) {
        ModelTransport found = agents.get(agentName);
        return found != null && found.incarnation() == incarnation ? found : null;
    }

    synchronized void leave(ModelTransport transport) {
        agents.remove(transport.agentName(), transport);
    }
}
