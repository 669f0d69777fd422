#!/usr/bin/env python3
"""Draws made-up results with tools/figures/plot: the figure has every panel and curve, the page the table.

  plot_test.py PLOT
"""

import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

PLOT = sys.argv.pop(1)
PAGE = "before\n<!-- measured by tools/figures/scale {0}: begin -->\nold\n<!-- measured by tools/figures/scale {0}: end -->\nafter\n"
SERVER = {"reply_posts": 1, "receive_posts": 0.016, "send_completions": 0.031}
ITEMS = [{"items": n, "memory_bytes": 80 * n, "reads_per_get": 2, "read_bytes_per_get": 368, "posts_per_get": 0.063,
          "get_instructions_cold": 533, "get_instructions_warm": 373, "get_ns_depth_1": n / 200, "get_ns_depth_32": 218,
          "copies_ns": 396} for n in (100_000, 1_000_000)]
SESSIONS = [{"sessions": n, "session_bytes": 2900 + n, "get": {"reads": 2, "read_bytes": 368}, "put_instructions": 426,
             "server": SERVER} for n in (1, 10)]


class PlotTest(unittest.TestCase):
    def draw(self, what, results):
        """Returns the words of the figure, and the page."""
        with tempfile.TemporaryDirectory() as folder:
            source, figure, page = (Path(folder) / name for name in ("in.json", "out.svg", "page.md"))
            source.write_text(json.dumps(results))
            page.write_text(PAGE.format(what))
            subprocess.run([PLOT, what, source, figure, page], check=True)
            words = [text.strip() for text in xml.etree.ElementTree.parse(figure).getroot().itertext() if text.strip()]
            return words, page.read_text()

    def test_draws_items(self):
        words, page = self.draw("items", ITEMS)
        for word in ("READs per GET, by items", "ns per GET, by items", "location known", "memcpy, 256 B + 112 B", "100k", "1M"):
            self.assertIn(word, words)
        self.assertIn("| 1,000,000 | 76 MiB | 2.0000 |", page)
        self.assertNotIn("\nold\n", page)

    def test_draws_sessions(self):
        words, page = self.draw("sessions", SESSIONS)
        for word in ("server instructions per PUT, by sessions", "a Poll of 10", "beside the queue pair", "1", "10"):
            self.assertIn(word, words)
        self.assertIn("| 10 | 2,910 | 2.000 |", page)


if __name__ == "__main__":
    unittest.main()
