"""Compares ``dormouse bench engine`` with llama.cpp on the same file with as many threads.

Run by ``./dormouse bench peers llama``. Each of llama.cpp's figures is taken with and without flash
attention, since neither is the better one everywhere.
"""

import argparse
import os
import pathlib

import pairing

SIDE = pathlib.Path(__file__).with_name("llama_side.py")


def main():
    parser = argparse.ArgumentParser(prog="dormouse bench peers llama", description=__doc__)
    parser.add_argument("--launcher", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--model", default=os.environ.get("DORMOUSE_MODEL"), help="a GGUF file")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5, help="pairs of processes")
    parser.add_argument("--repetitions", type=int, default=3, help="counted runs of a process")
    parser.add_argument("--json", help="a file to be written, too")
    options = parser.parse_args()
    common = ["--model", options.model, "--threads", options.threads]
    common += ["--repetitions", options.repetitions]

    def ours():
        rates = pairing.bench(options.launcher, "engine", *common)["rates"]
        return {rate["workload"]: rate["tokens_per_s"] for rate in rates}

    pairs = pairing.alternate(
        options.rounds, ours, lambda mine: pairing.child(SIDE, *common, *mine)
    )
    pairing.report(
        options.json,
        "tokens/s",
        pairs,
        peer="llama.cpp",
        model=options.model,
        threads=options.threads,
        repetitions=options.repetitions,
    )


if __name__ == "__main__":
    main()
