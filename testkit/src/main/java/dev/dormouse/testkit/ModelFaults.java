package dev.dormouse.testkit;

import dev.dormouse.transport.TransportException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/** What goes wrong on one {@link ModelTransport}, and how slow it is; all set by the test. */
public final class ModelFaults {
    private final Object monitor;
    private final Deque<ModelFault> planned = new ArrayDeque<>();
    private long transferDelayNanos;
    private long messageDelayNanos;
    private boolean newestFirst;
    private long revocationDelayNanos;
    private boolean hangs;
    private boolean feigns;
    private int lostMessages;
    private int failingNotifies;
    private int failingRegistrations;
    private int failingDeregistrations;
    private int failingLoads;
    private int failingPreparations;
    private int failingListCloses;
    private int failingPeerCloses;

    /** Nothing goes wrong; {@code monitor} guards the transport, too. */
    ModelFaults(Object monitor) {
        this.monitor = monitor;
    }

    /** How long each further read or write takes. */
    public void setReadDelay(Duration delay) {
        synchronized (monitor) {
            transferDelayNanos = delay.toNanos();
        }
    }

    /** How long each further message to this agent takes. */
    public void setMessageDelay(Duration delay) {
        synchronized (monitor) {
            messageDelayNanos = delay.toNanos();
        }
    }

    /** How long it takes until a mapping is given up that its owner revokes. */
    public void setRevocationDelay(Duration delay) {
        synchronized (monitor) {
            revocationDelayNanos = delay.toNanos();
        }
    }

    /** Whether mappings are kept that their owners revoke, as by a process that stands still. */
    public void setHangs(boolean value) {
        synchronized (monitor) {
            hangs = value;
        }
    }

    /** Whether mappings that are said to be given up are kept and used. */
    public void setFeigns(boolean value) {
        synchronized (monitor) {
            feigns = value;
        }
    }

    boolean feigns() {
        return feigns;
    }

    /** Whether messages that wait are taken newest first, also before ones that are late. */
    public void setNewestFirst(boolean value) {
        synchronized (monitor) {
            newestFirst = value;
        }
    }

    /** The next {@code times} messages to this agent never arrive. */
    public void loseMessages(int times) {
        synchronized (monitor) {
            lostMessages = times;
        }
    }

    /** The next read or write that has no plan yet meets {@code fault}. */
    public void planRead(ModelFault fault) {
        synchronized (monitor) {
            planned.add(fault);
        }
    }

    /** Plans that no transfer has met yet are off. */
    public void forgetPlans() {
        synchronized (monitor) {
            planned.clear();
        }
    }

    /** The next {@code times} messages cannot be sent. */
    public void failNotifies(int times) {
        synchronized (monitor) {
            failingNotifies = times;
        }
    }

    /** The next {@code times} registrations are refused. */
    public void failRegistrations(int times) {
        synchronized (monitor) {
            failingRegistrations = times;
        }
    }

    /** The next {@code times} deregistrations are refused. */
    public void failDeregistrations(int times) {
        synchronized (monitor) {
            failingDeregistrations = times;
        }
    }

    /** The next {@code times} loads are refused. */
    public void failLoads(int times) {
        synchronized (monitor) {
            failingLoads = times;
        }
    }

    /** The next {@code times} lists cannot be prepared. */
    public void failPreparations(int times) {
        synchronized (monitor) {
            failingPreparations = times;
        }
    }

    /** The next {@code times} lists that are closed stay open. */
    public void failListCloses(int times) {
        synchronized (monitor) {
            failingListCloses = times;
        }
    }

    /** The next {@code times} peers that are closed stay loaded. */
    public void failPeerCloses(int times) {
        synchronized (monitor) {
            failingPeerCloses = times;
        }
    }

    void beforePreparation() {
        if (failingPreparations > 0) {
            failingPreparations--;
            throw new TransportException("prepare: injected fault");
        }
    }

    void beforeListClose() {
        if (failingListCloses > 0) {
            failingListCloses--;
            throw new TransportException("release list: injected fault; it stays");
        }
    }

    void beforePeerClose() {
        if (failingPeerCloses > 0) {
            failingPeerCloses--;
            throw new TransportException("drop peer: injected fault; it stays loaded");
        }
    }

    /** Whether a revocation that was sent so long ago is obeyed by now. */
    boolean obeys(long sinceNanos) {
        return !hangs && sinceNanos >= revocationDelayNanos;
    }

    long transferDelayNanos() {
        return transferDelayNanos;
    }

    long messageDelayNanos() {
        return messageDelayNanos;
    }

    boolean isNewestFirst() {
        return newestFirst;
    }

    /** Whether the message that would arrive now is lost. */
    boolean losesNext() {
        if (lostMessages == 0) {
            return false;
        }
        lostMessages--;
        return true;
    }

    /** The plan for the transfer that starts now. */
    @Nullable ModelFault nextTransfer() {
        return planned.poll();
    }

    void beforeNotify() {
        if (failingNotifies > 0) {
            failingNotifies--;
            throw new TransportException("notify: injected fault");
        }
    }

    void beforeRegistration() {
        if (failingRegistrations > 0) {
            failingRegistrations--;
            throw new TransportException("register: injected fault");
        }
    }

    void beforeDeregistration() {
        if (failingDeregistrations > 0) {
            failingDeregistrations--;
            throw new TransportException("deregister: injected fault; the memory stays registered");
        }
    }

    void beforeLoad() {
        if (failingLoads > 0) {
            failingLoads--;
            throw new TransportException("load peer: injected fault");
        }
    }
}
