package dev.dormouse.cli;

import java.io.PrintWriter;
import picocli.CommandLine.Command;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code dormouse version}. */
@Command(name = "version", description = "Print the version.", mixinStandardHelpOptions = true)
final class VersionCommand implements Runnable {
    @Spec private CommandSpec spec;

    @Override
    public void run() {
        PrintWriter out = spec.commandLine().getOut();
        out.println(text());
        out.flush();
    }

    private static String text() {
        return "dormouse " + Version.ofProject() + ", Java " + Runtime.version();
    }

    /** Answers {@code --version} with the same text. */
    static final class Text implements IVersionProvider {
        @Override
        public String[] getVersion() {
            return new String[] {text()};
        }
    }
}
