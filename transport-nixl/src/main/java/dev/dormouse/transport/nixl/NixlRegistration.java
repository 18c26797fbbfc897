package dev.dormouse.transport.nixl;

import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.Registration;
import java.util.List;

/** A registration of NIXL's. */
record NixlRegistration(dev.dormouse.nixl.Registration registration, List<MemoryRange> ranges)
        implements Registration {
    @Override
    public void close() {
        NixlTransport.translated(
                () -> {
                    registration.close();
                    return null;
                });
    }
}
