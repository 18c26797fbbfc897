package dev.dormouse.cli.bench;

import dev.dormouse.cli.bench.costs.CostsBench;
import dev.dormouse.cli.bench.cuda.DeviceReader;
import dev.dormouse.cli.bench.serve.ServeBench;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code dormouse bench}. */
@Command(
        name = "bench",
        mixinStandardHelpOptions = true,
        description = "Measures parts of Dormouse on this machine.",
        footer = {
            "",
            "By the launcher alone:",
            "  ./dormouse bench jmh [OPTIONS OF JMH]   single parts, such as kernels and codecs",
            "  ./dormouse bench peers llama|nixl       beside llama.cpp, or NIXL's Python API"
        },
        subcommands = {
            EngineBench.class,
            ServeBench.class,
            CostsBench.class,
            SleepBench.class,
            TransferBench.class,
            TransferOwner.class,
            DeviceReader.class
        })
public final class BenchCommand implements Runnable {
    @Spec private CommandSpec spec;

    /** Made by picocli. */
    public BenchCommand() {}

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "which benchmark?");
    }
}
