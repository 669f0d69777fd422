#!/usr/bin/env python3
"""Tests proven.py: no change of what the device's tests depend on goes unnoticed."""

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True  # the folder is a source folder

import proven


class ProvenTest(unittest.TestCase):
    """In a small repository with a file in each place."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.places = [self.root / place if (proven.ROOT / place).is_file() else self.root / place / "some" / "file.cc"
                       for place in proven.DEPENDS_ON]
        for place in [*self.places, self.root / "server/memory/store/store.cc", self.root / proven.RECORD]:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("before")
        (self.root / ".gitignore").write_text("build/\n")
        self.git("init", "-q")
        self.git("add", "-A")
        (self.root / proven.RECORD).write_text(proven.digest(self.root) + "\n")

    def git(self, *words):
        subprocess.run(["git", "-C", str(self.root), *words], check=True, capture_output=True)

    def test_holds_while_nothing_changes(self):
        self.assertTrue(proven.proven(self.root))

    def test_holds_when_only_the_store_changes(self):
        (self.root / "server/memory/store/store.cc").write_text("after")
        (self.root / "build").mkdir()
        (self.root / "build/file").write_text("made")
        self.assertTrue(proven.proven(self.root))

    def test_a_change_in_each_place_is_noticed_before_and_after_it_is_staged(self):
        for place in self.places:
            place.write_text("after")
            self.assertFalse(proven.proven(self.root), place)
            self.git("add", "-A")
            self.assertFalse(proven.proven(self.root), place)
            place.write_text("before")
            self.assertTrue(proven.proven(self.root), place)

    def test_a_new_file_is_noticed_in_each_folder(self):
        for place in self.places:
            if place.name != "file.cc":
                continue
            new = place.with_name("new.cc")
            new.write_text("")
            self.assertFalse(proven.proven(self.root), new)
            new.unlink()
            self.assertTrue(proven.proven(self.root), new)

    def test_a_file_that_went_moved_or_became_a_program_is_noticed(self):
        for change in (lambda file: file.unlink(), lambda file: file.rename(file.with_name("other.cc")),
                       lambda file: file.chmod(0o755), lambda file: (file.unlink(), file.symlink_to("before"))):
            file = next(place for place in self.places if place.name == "file.cc")
            change(file)
            self.assertFalse(proven.proven(self.root))
            self.git("add", "-A")
            self.assertFalse(proven.proven(self.root))
            for other in file.parent.iterdir():
                other.unlink()
            file.write_text("before")
            self.assertTrue(proven.proven(self.root))

    def test_what_two_files_have_is_not_what_one_of_them_has(self):
        one, two = [place for place in self.places if place.name == "file.cc"][:2]
        one.write_text("before before")
        two.write_text("")
        self.assertFalse(proven.proven(self.root))

    def test_without_a_record_nothing_is_proven(self):
        (self.root / proven.RECORD).write_text("")
        self.assertFalse(proven.proven(self.root))
        (self.root / proven.RECORD).unlink()
        self.assertFalse(proven.proven(self.root))


class DependenciesTest(unittest.TestCase):
    """Of this tree."""

    def test_each_place_exists(self):
        for place in proven.DEPENDS_ON:
            self.assertTrue((proven.ROOT / place).exists(), place)

    def test_the_tests_and_the_device_include_nothing_of_ours_from_elsewhere(self):
        counted = 0
        for source in (proven.ROOT / "softverbs").rglob("*.*"):
            if source.suffix not in (".cc", ".h", ".c"):
                continue
            for name in re.findall(r'^#include "([^"]+)"', source.read_text(), re.MULTILINE):
                if (proven.ROOT / name).exists():
                    counted += 1
                    self.assertTrue(name.startswith("softverbs/"), f"{source} includes {name}")
        self.assertGreater(counted, 100)


if __name__ == "__main__":
    unittest.main()
