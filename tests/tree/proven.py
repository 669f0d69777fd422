#!/usr/bin/env python3
"""Says whether the device's own tests have passed with what they depend on.

They are the tests of softverbs/tests: of the device, of the verbs contract, and of other people's programs on softverbs.
They use nothing from outside of softverbs/, so a change of the store cannot break them. `./dev device` runs them all, also under the
sanitizers, and records a hash of all files that they depend on. While it holds, `./dev test` and `./dev check` leave
them out.

  proven.py check    exit code 0: they passed with these files; 1: they must run
  proven.py record   to be called after a green run of all of them
"""

import argparse
import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = "tests/tree/device.proven"
# Folders and files: the device with its tests, and how Gannet builds and runs them. proven_test.py fails if something in
# softverbs/ includes what is not there.
DEPENDS_ON = ("softverbs", "tests/softverbs", "tests/CMakeLists.txt", "cmake", "CMakeLists.txt", "CMakePresets.json",
              "dev")


def files(root):
    """Returns the files as they are now, whether git knows them or not, but for those that it ignores."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard",
                             "--", *DEPENDS_ON], check=True, capture_output=True, text=True)
    return sorted({name for name in listed.stdout.split("\0") if name and os.path.lexists(root / name)})


def digest(root):
    whole = hashlib.sha256()
    for name in files(root):
        path = root / name
        mode = path.lstat().st_mode
        content = os.readlink(path).encode() if stat.S_ISLNK(mode) else path.read_bytes()
        kind = "link" if stat.S_ISLNK(mode) else "program" if mode & stat.S_IXUSR else "file"
        whole.update(f"{kind} {len(name)} {name} {hashlib.sha256(content).hexdigest()}\n".encode())
    return whole.hexdigest()


def proven(root):
    record = root / RECORD
    return record.is_file() and record.read_text().strip() == digest(root)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("check", "record"))
    parser.add_argument("--root", type=Path, default=ROOT)
    arguments = parser.parse_args()
    if arguments.what == "check":
        return 0 if proven(arguments.root) else 1
    (arguments.root / RECORD).write_text(digest(arguments.root) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
