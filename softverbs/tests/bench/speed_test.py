#!/usr/bin/python3
"""Whether the script that measures softverbs measures: speed_test.py SPEED_PY SOFTVERBS_RUN"""

import json
import subprocess
import sys
import tempfile
import unittest

LIMIT_S = 240


class SpeedTest(unittest.TestCase):
    def test_each_cell_has_a_figure(self):
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            command = [SPEED, "--quick", "--softverbs-run", RUN, "--json", out.name]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.load(out)
        rows = [line.split("|")[2:-1] for line in done.stdout.splitlines() if line.startswith(("| 64 B", "| 1 MiB"))]
        self.assertEqual(len(rows), 4, done.stdout)
        for row in rows:
            self.assertEqual(len(row), 6, done.stdout)
            for figure in row:
                # A bandwidth of 64 B with so few of them may be rounded to 0.
                self.assertGreaterEqual(float(figure.replace(",", "")), 0, done.stdout)
        for size in map(str, result["sizes"]):
            times = [result["measured"]["latency"][run]["softverbs0"][size] for run in ("READ", "WRITE", "SEND")]
            self.assertGreater(min(times), 0)

    def test_a_round_ends_in_time_and_leaves_the_rest_out(self):
        program = ("import os, sys; sys.path.insert(0, os.path.dirname(sys.argv[1])); import speed; speed.ROUND_LIMIT_S = 0; "
                   "sys.argv[1:] = ['--quick', '--softverbs-run', sys.argv[2]]; speed.main()")
        done = subprocess.run([sys.executable, "-c", program, SPEED, RUN], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"round 1 of 1 took \d+ s, and had no time for 20 runs")
        self.assertEqual(done.stdout.count(" | -" * 5 + " |"), 4, done.stdout)
        self.assertRegex(done.stdout, r"load average [\d.]+ before and [\d.]+ after")

    def test_a_program_that_is_not_there_is_named(self):
        done = subprocess.run([SPEED, "--quick", "--softverbs-run", "/nowhere/softverbs-run"], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "speed.py: there is no /nowhere/softverbs-run\n"))


if __name__ == "__main__":
    SPEED, RUN = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
