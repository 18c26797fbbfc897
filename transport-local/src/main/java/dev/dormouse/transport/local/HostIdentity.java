package dev.dormouse.transport.local;

import dev.dormouse.transport.TransportException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Tells whether two processes can meet on an abstract socket.
 *
 * @param boot this start of this machine's kernel
 * @param networkNamespace where abstract names live; containers may have their own
 */
record HostIdentity(Token boot, long networkNamespace) {
    private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");
    private static final Path NETWORK_NAMESPACE = Path.of("/proc/self/ns/net");
    private static final Pattern NAMESPACE = Pattern.compile("net:\\[(\\d+)]");

    /**
     * This process's.
     *
     * @throws TransportException if the kernel does not tell
     */
    static HostIdentity ofThisProcess() {
        try {
            UUID boot = UUID.fromString(Files.readString(BOOT_ID).strip());
            String link = Files.readSymbolicLink(NETWORK_NAMESPACE).toString();
            Matcher namespace = NAMESPACE.matcher(link);
            if (!namespace.matches()) {
                throw new TransportException(
                        "identify this host failed: %s is %s, and not as net:[4026531840]"
                                .formatted(NETWORK_NAMESPACE, link));
            }
            return new HostIdentity(
                    new Token(boot.getMostSignificantBits(), boot.getLeastSignificantBits()),
                    Long.parseLong(namespace.group(1)));
        } catch (IOException | IllegalArgumentException e) {
            throw new TransportException(
                    "identify this host failed: %s and %s must be readable"
                            .formatted(BOOT_ID, NETWORK_NAMESPACE),
                    e);
        }
    }
}
