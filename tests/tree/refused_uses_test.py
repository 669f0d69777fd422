#!/usr/bin/env python3
"""Shows that the compiler refuses what it should, and says why.

  refused_uses_test.py BUILD_DIR

Each line of a file of FILES that must not compile says so in a comment, in the words of clang's -verify. The test
fails if clang takes such a line, if it gives another reason, or if it refuses any other line.
"""

import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True  # the folder is a source folder

import alone

BUILD = Path(sys.argv.pop(1)).resolve()
# By file: a source of the build, with whose flags it is compiled.
FILES = {"tests/server/memory/index/refused_uses.cc": "tests/server/memory/index/index_test.cc"}


def complaints(source, flags):
    """Returns what clang says, if that is not what the source's comments say."""
    command = ["clang++", "-fsyntax-only", "-Wno-unused", "-ferror-limit=0", "-Xclang", "-verify",
               "-Xclang", "-verify-ignore-unexpected=note", *flags, "-xc++", "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, cwd=alone.ROOT)
    return done.stderr if done.returncode else ""


class RefusedUsesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        flags = alone.flags_by_source(BUILD)
        cls.sources = {name: ((alone.ROOT / name).read_text(), flags[alone.ROOT / like]) for name, like in FILES.items()}

    def test_what_is_marked_does_not_compile_and_all_else_does(self):
        for name, (source, flags) in self.sources.items():
            self.assertEqual(complaints(source, flags), "", name)

    def test_a_marked_line_that_compiles_is_found(self):
        for name, (source, flags) in self.sources.items():
            before, mark, after = source.partition("// expected-error")
            lines = before.splitlines()
            lines[-1] = "  (void)0;  "
            changed = "\n".join(lines) + mark + after
            self.assertIn("expected but not seen", complaints(changed, flags), name)


if __name__ == "__main__":
    unittest.main()
