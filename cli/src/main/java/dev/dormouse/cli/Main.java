package dev.dormouse.cli;

import dev.dormouse.cli.bench.BenchCommand;
import dev.dormouse.cli.demo.DemoCommand;
import dev.dormouse.cli.demo.RehearseCommand;
import dev.dormouse.cli.doctor.Doctor;
import dev.dormouse.cli.route.RouteCommand;
import dev.dormouse.cli.serve.ServeCommand;
import dev.dormouse.cli.simulate.SimulateCommand;
import java.io.PrintWriter;
import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.HelpCommand;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.Spec;

/** The {@code dormouse} command. Each subcommand is one class, named in {@link #SUBCOMMANDS}. */
@Command(
        name = "dormouse",
        description =
                "Serves language models with prefill and decode in separate engines that can sleep.",
        mixinStandardHelpOptions = true,
        versionProvider = VersionCommand.Text.class,
        synopsisSubcommandLabel = "COMMAND",
        footer = {
            "",
            "The launcher itself answers:",
            "  test [MAVEN ARGUMENT...]  Run all tests.",
            "  env                       Print the variables that an IDE needs to run the tests.",
            "",
            "`dormouse help COMMAND` explains a command."
        })
public final class Main implements Runnable {
    private static final List<Class<?>> SUBCOMMANDS =
            List.of(
                    ServeCommand.class,
                    RouteCommand.class,
                    DemoCommand.class,
                    BenchCommand.class,
                    SimulateCommand.class,
                    Doctor.class,
                    RehearseCommand.class,
                    VersionCommand.class,
                    HelpCommand.class);

    @Spec private CommandSpec spec;

    private Main() {}

    /** Exits with 0 on success, 1 when a command failed, 2 when it was misused. */
    public static void main(String[] arguments) {
        System.exit(run(arguments));
    }

    private static int run(String[] arguments) {
        if (arguments.length == 0 || !arguments[0].equals(RehearseCommand.NAME)) {
            VectorModule.load();
        }
        try {
            return commandLine(subcommands(arguments))
                    .execute(ConfigFile.expand(List.of(arguments)).toArray(String[]::new));
        } catch (IllegalArgumentException e) {
            System.err.println("dormouse: " + e.getMessage());
            return CommandLine.ExitCode.USAGE;
        }
    }

    /**
     * Only the one that was asked for, if it is there: reading the options of the others takes as
     * long as everything else before it runs.
     */
    private static List<Class<?>> subcommands(String... arguments) {
        return SUBCOMMANDS.stream()
                .filter(type -> arguments.length > 0 && name(type).equals(arguments[0]))
                .filter(type -> type != HelpCommand.class)
                .findFirst()
                .<List<Class<?>>>map(List::of)
                .orElse(SUBCOMMANDS);
    }

    private static String name(Class<?> subcommand) {
        return subcommand.getAnnotation(Command.class).name();
    }

    /** The command with all its subcommands; callers may redirect its output. */
    static CommandLine commandLine() {
        return commandLine(SUBCOMMANDS);
    }

    private static CommandLine commandLine(List<Class<?>> subcommands) {
        CommandLine command = new CommandLine(new Main());
        subcommands.forEach(command::addSubcommand);
        return command.setExecutionExceptionHandler(Main::report)
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setOverwrittenOptionsAllowed(true);
    }

    /** Called for {@code dormouse} without a subcommand. */
    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "which command?");
    }

    /** A failure's message is written for the user; its stack trace is for whoever asks for it. */
    private static int report(Exception failure, CommandLine command, ParseResult ignored) {
        PrintWriter err = command.getErr();
        err.println("dormouse: " + (failure.getMessage() == null ? failure : failure.getMessage()));
        if (Boolean.getBoolean("dormouse.stacktrace")) {
            failure.printStackTrace(err);
        }
        err.flush();
        return CommandLine.ExitCode.SOFTWARE;
    }
}
