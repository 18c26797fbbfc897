package dev.dormouse.cli.bench;

import dev.dormouse.cli.ExitWithParent;
import dev.dormouse.cli.fleet.Json;
import dev.dormouse.transport.KvTransport;
import dev.dormouse.transport.Registration;
import dev.dormouse.transport.TransportMetadata;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** The process whose memory {@code dormouse bench transfer} reads. */
@Command(name = "transfer-owner", hidden = true)
final class TransferOwner implements Callable<Integer> {
    /** What it prints once it can be read from: {@link Told} as JSON. */
    static final Pattern READY = Pattern.compile("^Owner (\\{.*})$", Pattern.MULTILINE);

    private static final long POLL_MILLIS = 1;

    @Option(names = "--mib", required = true)
    private int mebibytes;

    @Option(names = "--exit-with-parent", hidden = true)
    private boolean exitWithParent;

    /**
     * What a reader must know.
     *
     * @param address of the memory
     * @param descriptor of its file
     * @param agents the metadata of each transport, in the order of {@link TransferSide#NAMES}
     */
    record Told(long address, int descriptor, List<TransportMetadata> agents) {}

    @Override
    public Integer call() throws InterruptedException {
        if (exitWithParent) {
            ExitWithParent.watch();
        }
        try (TransferSide side = new TransferSide((long) mebibytes << 20)) {
            side.fill();
            List<KvTransport> transports = new ArrayList<>();
            List<Registration> registrations = new ArrayList<>();
            for (String name : TransferSide.NAMES) {
                KvTransport transport = side.open(name);
                transports.add(transport);
                registrations.add(transport.register(List.of(side.range())));
            }
            Told told =
                    new Told(
                            side.range().address(),
                            side.export(),
                            transports.stream().map(KvTransport::metadata).toList());
            System.out.println("Owner " + Json.MAPPER.valueToTree(told));
            while (!registrations.isEmpty()) { // until the reader is gone
                transports.forEach(KvTransport::messages);
                TimeUnit.MILLISECONDS.sleep(POLL_MILLIS);
            }
        }
        return 0;
    }
}
