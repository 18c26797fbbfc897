"""Compares ``dormouse bench transfer --transport nixl`` with NIXL's own Python API.

Run by ``./dormouse bench peers nixl``. Both read shuffled blocks from another process of their kind,
make the request anew each time, and count their best round.
"""

import argparse
import pathlib

import pairing

SIDE = pathlib.Path(__file__).with_name("nixl_side.py")


def main():
    parser = argparse.ArgumentParser(prog="dormouse bench peers nixl", description=__doc__)
    parser.add_argument("--launcher", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--size-mib", type=int, default=256)
    parser.add_argument("--block-kib", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5, help="pairs of processes")
    parser.add_argument("--repetitions", type=int, default=15, help="counted reads of a process")
    parser.add_argument("--json", help="a file to be written, too")
    options = parser.parse_args()
    workload = f"{options.size_mib} MiB of {options.block_kib} KiB"

    def ours():
        [rate] = pairing.bench(
            options.launcher,
            "transfer",
            "--transport=nixl",
            f"--sizes-mib={options.size_mib}",
            f"--blocks-kib={options.block_kib}",
            f"--rounds={options.repetitions}",
        )["rates"]
        return {workload: rate["gb_per_s"]}

    def theirs(_):
        rates = pairing.child(
            SIDE, "reader", options.size_mib << 20, options.block_kib << 10, options.repetitions
        )
        return {variant: {workload: rate} for variant, rate in rates.items()}

    pairing.report(
        options.json,
        "GB/s",
        pairing.alternate(options.rounds, ours, theirs),
        peer="NIXL from Python",
        repetitions=options.repetitions,
    )


if __name__ == "__main__":
    main()
