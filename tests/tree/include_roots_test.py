#!/usr/bin/env python3
"""Shows that the compiler refuses to include what the table in docs/architecture.md does not allow.

  include_roots_test.py BUILD_DIR
"""

import json
import shlex
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)).resolve()


def include_options():
    """Returns folder -> for each of its targets: the directory to compile in, and the words that say where headers are."""
    options = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        # The objects of server/memory are server/memory/CMakeFiles/server_memory.dir/... CMake 3.25 has no "output" for them.
        output = Path(entry["directory"], words[words.index("-o") + 1]).relative_to(BUILD)
        folder, _, target = str(output).partition("/CMakeFiles/")
        paths = [word for word in words if word.startswith("-I")]
        paths += [part for at, word in enumerate(words) if word in ("-iquote", "-isystem") for part in words[at:at + 2]]
        options.setdefault(folder, {})[target.partition("/")[0]] = paths
    return options


OPTIONS = include_options()


class IncludeRootsTest(unittest.TestCase):
    def includes(self, folder, header):
        """Returns whether a source in that folder can include the header."""
        (paths, *_) = OPTIONS[folder].values()
        command = ["c++", "-E", "-x", "c++", "-", "-o", "/dev/null", *paths]
        done = subprocess.run(command, input=f'#include "{header}"\n', capture_output=True, text=True, cwd=BUILD)
        if done.returncode:
            self.assertIn(header, done.stderr)
        return done.returncode == 0

    def test_no_source_outside_of_tests_sees_the_whole_tree(self):
        for folder, targets in OPTIONS.items():
            if folder.split("/")[0] == "tests":
                continue
            for target, paths in targets.items():
                for path in paths:
                    self.assertNotIn(Path(path.removeprefix("-I")), [ROOT, *ROOT.parents], f"{folder}: {target}")

    def test_a_room_sees_what_the_rows_of_its_folders_allow_and_no_more(self):
        self.assertTrue(self.includes("server/memory", "common/layout/item.h"))
        self.assertTrue(self.includes("server/memory", "server/memory/heap/heap.h"))
        self.assertFalse(self.includes("server/memory", "server/writes/writes.h"))
        self.assertFalse(self.includes("server/memory", "client/api/driver.h"))
        self.assertFalse(self.includes("client/example", "client/api/driver.h"))

    def test_a_folder_of_softverbs_sees_those_below_it(self):
        self.assertTrue(self.includes("softverbs/cq", "softverbs/nic/link.h"))
        self.assertFalse(self.includes("softverbs/cq", "softverbs/qp/qp.h"))

    def test_a_test_of_softverbs_sees_softverbs_and_no_more(self):
        self.assertTrue(self.includes("softverbs/tests/cm", "softverbs/cm/wire.h"))
        self.assertTrue(self.includes("softverbs/tests/cm", "softverbs/tests/support/child_process.h"))
        self.assertFalse(self.includes("softverbs/tests/cm", "common/base/check.h"))


if __name__ == "__main__":
    unittest.main()
