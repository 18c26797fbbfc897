package dev.dormouse.transport.local;

import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import java.util.ArrayList;
import java.util.List;

/** The same memory, registered with two transports. */
final class AutoRegistration implements Registration {
    private final KvTransport nearTransport;
    private final Registration far;
    private Registration near;

    private AutoRegistration(KvTransport nearTransport, Registration near, Registration far) {
        this.nearTransport = nearTransport;
        this.near = near;
        this.far = far;
    }

    static AutoRegistration register(
            KvTransport nearTransport, KvTransport farTransport, List<MemoryRange> ranges) {
        Registration far = farTransport.register(ranges);
        try {
            // last: peers may hold it from then on; under the same device ids, for rows name both
            return new AutoRegistration(nearTransport, nearTransport.register(far.ranges()), far);
        } catch (RuntimeException e) {
            try {
                far.close();
            } catch (RuntimeException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
    }

    @Override
    public List<MemoryRange> ranges() {
        return far.ranges();
    }

    @Override
    public List<String> revoke() {
        List<String> users = new ArrayList<>(near.revoke());
        users.addAll(far.revoke());
        return users;
    }

    @Override
    public void readmit() {
        near.readmit();
        far.readmit();
    }

    /** If the far one stays, the near one is made again. */
    @Override
    public void close() {
        near.close();
        try {
            far.close();
        } catch (RuntimeException e) {
            try {
                near = nearTransport.register(far.ranges());
            } catch (RuntimeException second) {
                e.addSuppressed(second);
            }
            throw e;
        }
    }
}
