package dev.dormouse.cli.serve;

import dev.dormouse.connector.TransportChoice;
import dev.dormouse.engine.core.MemoryFiles;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.MemoryRange;
import dev.dormouse.transport.TransportException;
import dev.dormouse.transport.local.AutoTransport;
import dev.dormouse.transport.local.BackingFile;
import dev.dormouse.transport.local.LocalTransport;
import dev.dormouse.transport.local.LocalTransportOptions;
import dev.dormouse.transport.local.SegmentAccess;
import dev.dormouse.transport.nixl.NixlTransport;
import dev.dormouse.transport.nixl.UcxSleepDefaults;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Map;

/** Opens the transports of one connector. */
final class Transports {
    private static final Logger LOGGER = System.getLogger("dormouse.cli");
    private static final String BACKEND = "UCX";

    private final KvSettings settings;
    private final boolean sleepMode;
    private final MemoryFiles files;

    /**
     * Opens nothing yet.
     *
     * @param files where peers' mappings come from
     */
    Transports(KvSettings settings, boolean sleepMode, MemoryFiles files) {
        this.settings = settings;
        this.sleepMode = sleepMode;
        this.files = files;
    }

    /** An agent for one rank. */
    KvTransport open() {
        return switch (settings.transport()) {
            case NIXL -> nixl();
            case LOCAL -> LocalTransport.open(localOptions());
            case AUTO -> auto(nixl());
        };
    }

    /** Without the same-host transport this engine still reads and serves, over NIXL. */
    private KvTransport auto(KvTransport nixl) {
        try {
            return new AutoTransport(
                    LocalTransport.open(localOptions().withAgentName(nixl.agentName())), nixl);
        } catch (TransportException e) {
            LOGGER.log(
                    Level.WARNING,
                    "no same-host transport, KV goes over NIXL on this host too: {0}",
                    e.getMessage());
            return nixl;
        }
    }

    private KvTransport nixl() {
        Map<String, String> given = settings.backendParameters();
        return NixlTransport.open(
                BACKEND, sleepMode ? UcxSleepDefaults.applied(given, System.getenv()) : given);
    }

    private LocalTransportOptions localOptions() {
        return LocalTransportOptions.of(this::export)
                .withAccess(settings.isPush() ? SegmentAccess.READ_WRITE : SegmentAccess.READ);
    }

    private BackingFile export(MemoryRange range) {
        MemoryFiles.Part part = files.export(range.address(), range.lengthBytes());
        return new BackingFile(part.descriptor(), part.offsetBytes(), part.lengthBytes());
    }

    /**
     * Says once what sleep mode tells UCX, however many agents there are: its defaults yield to the
     * process's environment alone.
     */
    static void sayWhatUcxIsTold(KvSettings settings) {
        if (settings.connectors().stream().allMatch(Transports::isLocal)) {
            return;
        }
        Map<String, String> added =
                UcxSleepDefaults.added(settings.backendParameters(), System.getenv());
        LOGGER.log(
                Level.INFO,
                "sleep mode tells UCX: {0}",
                added.isEmpty() ? "nothing, all is set by the user" : added);
    }

    private static boolean isLocal(KvSettings each) {
        return each.transport() == TransportChoice.LOCAL;
    }
}
