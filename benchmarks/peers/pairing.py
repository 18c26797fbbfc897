"""Measures this build and a peer in turn, and compares them pair by pair.

A machine's speed changes from minute to minute. What is run in turn meets the same changes, and the
median of the pairs' ratios is hardly moved by them.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile


def bench(launcher, *arguments):
    """What ``dormouse bench`` measures, from its JSON."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        command = [launcher, "bench", *map(str, arguments), "--json", report]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return json.loads(report.read_text())


def child(*command):
    """What another process prints as JSON."""
    command = [sys.executable, *map(str, command)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def alternate(rounds, ours, theirs):
    """Pairs of what ``ours()`` and, of that, ``theirs(...)`` give: A B A B.

    Ours are rates by workload. Theirs are such rates by variant of the peer.
    """
    pairs = []
    for number in range(1, rounds + 1):
        print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
        mine = ours()
        pairs.append((mine, theirs(mine)))
    return pairs


def compare(pairs):
    """A row for each workload and variant: medians, and the median of the pairs' ratios."""
    rows = []
    for workload in pairs[0][0]:
        for variant in pairs[0][1]:
            mine = [ours[workload] for ours, _ in pairs]
            others = [theirs[variant][workload] for _, theirs in pairs]
            ratios = [own / other for own, other in zip(mine, others, strict=True)]
            rows.append(
                {
                    "workload": workload,
                    "variant": variant,
                    "ours": statistics.median(mine),
                    "theirs": statistics.median(others),
                    "ratio": statistics.median(ratios),
                    "lowest_ratio": min(ratios),
                    "highest_ratio": max(ratios),
                }
            )
    return rows


def table(rows, unit):
    """The rows for a person."""
    lines = [
        f"{'':22}{'':26}{'ours':>9}{'theirs':>9}{'ratio':>8}{'from':>7}{'to':>7}",
        f"{'':22}{'':26}{unit:>9}{unit:>9}",
    ]
    for row in rows:
        lines.append(
            f"{row['workload']:22}{row['variant']:26}{row['ours']:9.2f}{row['theirs']:9.2f}"
            f"{row['ratio']:8.2f}{row['lowest_ratio']:7.2f}{row['highest_ratio']:7.2f}"
        )
    return "\n".join(lines)


def report(path, unit, pairs, **conditions):
    """Prints the table; writes JSON with all pairs, too, if ``path`` is given."""
    rows = compare(pairs)
    print(table(rows, unit))
    if path:
        whole = {**conditions, "unit": unit, "rows": rows, "pairs": pairs}
        pathlib.Path(path).write_text(json.dumps(whole, indent=2) + "\n")
