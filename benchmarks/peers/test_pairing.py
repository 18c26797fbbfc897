"""python3 -m unittest discover benchmarks/peers"""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import pairing

PAIRS = [
    ({"a": 2.0}, {"x": {"a": 1.0}, "y": {"a": 4.0}}),
    ({"a": 30.0}, {"x": {"a": 10.0}, "y": {"a": 40.0}}),
    ({"a": 3.0}, {"x": {"a": 3.0}, "y": {"a": 1.0}}),
]


class PairingTest(unittest.TestCase):
    def test_ratios_are_of_pairs_not_of_medians(self):
        first, second = pairing.compare(PAIRS)
        self.assertEqual((first["variant"], second["variant"]), ("x", "y"))
        self.assertEqual((first["ours"], first["theirs"]), (3.0, 3.0))
        self.assertEqual(first["ratio"], 2.0)
        self.assertEqual((first["lowest_ratio"], first["highest_ratio"]), (1.0, 3.0))
        self.assertEqual(second["ratio"], 0.75)

    def test_sides_take_turns_and_the_peer_learns_what_to_measure(self):
        calls = []

        def ours():
            calls.append("ours")
            return {"a": 1.0}

        def theirs(mine):
            calls.append(list(mine))
            return {"x": {"a": 2.0}}

        with contextlib.redirect_stderr(io.StringIO()):
            pairs = pairing.alternate(2, ours, theirs)
        self.assertEqual(calls, ["ours", ["a"], "ours", ["a"]])
        self.assertEqual(pairs, [({"a": 1.0}, {"x": {"a": 2.0}})] * 2)

    def test_report_has_a_line_for_each_row_and_all_pairs_in_json(self):
        out = io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "r.json")
            with contextlib.redirect_stdout(out):
                pairing.report(path, "GB/s", PAIRS, threads=2)
            whole = json.loads(path.read_text())
        self.assertEqual(len(out.getvalue().splitlines()), 2 + 2)
        self.assertEqual((whole["threads"], whole["unit"], len(whole["pairs"])), (2, "GB/s", 3))
        self.assertEqual([row["ratio"] for row in whole["rows"]], [2.0, 0.75])


if __name__ == "__main__":
    unittest.main()
