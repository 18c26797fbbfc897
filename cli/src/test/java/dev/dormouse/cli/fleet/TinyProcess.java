package dev.dormouse.cli.fleet;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A process of a fleet whose model is tiny, or that has none: its JVM has neither vectors nor an
 * optimising compiler. To compile vector kernels takes longer than such a model ever computes, and
 * its tokens are the same without.
 */
public final class TinyProcess {
    private TinyProcess() {}

    /** As {@link ChildProcess#start(String, Path, List)}. */
    public static ChildProcess start(String name, Path logs, List<String> arguments) {
        return ChildProcess.launch(name, logs, Map.of(), command(arguments));
    }

    /** As {@link ChildProcess#command}. */
    public static List<String> command(List<String> arguments) {
        List<String> command = new ArrayList<>(ChildProcess.command(arguments));
        command.remove("--add-modules=jdk.incubator.vector");
        command.add(1, "-XX:TieredStopAtLevel=1");
        return command;
    }
}
