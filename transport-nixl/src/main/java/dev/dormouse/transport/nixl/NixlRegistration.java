package dev.dormouse.transport.nixl;

import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import java.util.List;

/** A registration of NIXL's. */
record NixlRegistration(dev.dormouse.nixl.Registration registration, List<MemoryRange> ranges)
        implements Registration {
    /** Whoever reads through NIXL needs the owner's registration, which ends with it. */
    @Override
    public List<String> revoke() {
        return List.of();
    }

    @Override
    public void readmit() {}

    @Override
    public void close() {
        NixlTransport.translated(
                () -> {
                    registration.close();
                    return null;
                });
    }
}
