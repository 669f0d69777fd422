#!/usr/bin/env python3
"""Compiles each source, and each header that has no source, alone and without precompiled headers.

The build compiles a folder's sources together, so it does not notice an #include that one of them lacks.
This does. It checks the syntax only, with the flags of the source's target, and prints what does not compile.

  alone.py --build DIR [--compiler clang++] [--of N] [PATH...]   PATHs: only these files

--of N takes one file in N. The number of commits chooses which, so N commits in a row take all of them.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True  # the folder is a source folder

from tree import is_test

ROOT = Path(__file__).resolve().parents[2]
OURS = ("client", "common", "proxy", "server", "softverbs", "tests", "tools")
SECONDS_MAX = 120  # for one source
# What says how to include and what to define. Other flags do not matter for syntax.
PREFIXES = ("-I", "-D", "-std=")


def flags_by_source(build):
    """Returns source -> flags, also of the sources that a unity file includes."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])
        flags = [word for word in words if word.startswith(PREFIXES)]
        flags += [part for at, word in enumerate(words) if word in ("-isystem", "-iquote") for part in words[at:at + 2]]
        source = Path(entry["file"])
        sources = [source]
        if "Unity" in source.parts:
            sources = [Path(name) for name in re.findall(r'#include "([^"]+)"', source.read_text())]
        for one in sources:
            if one.suffix == ".cc" and ours(one):
                found.setdefault(one, flags)
    return found


def ours(path):
    return path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in OURS


def with_lone_headers(flags):
    """Adds headers that no source has as its first include, with the flags of a source of their folder."""
    by_folder = {source.parent: of_source for source, of_source in flags.items()}
    names = subprocess.run(["git", "-C", str(ROOT), "ls-files", "*.h"], check=True, capture_output=True, text=True)
    for name in names.stdout.split():
        header = ROOT / name
        if header.with_suffix(".cc") not in flags and header.parent in by_folder:
            flags[header] = by_folder[header.parent] + [f"-I{ROOT}/softverbs/include"]
    return flags


def commits():
    """Returns the number of commits that led to this tree."""
    counted = subprocess.run(["git", "-C", str(ROOT), "rev-list", "--count", "HEAD"], check=True, capture_output=True,
                             text=True)
    return int(counted.stdout)


def problems_of(compiler, path, flags, folder):
    source = path
    if path.suffix == ".h":  # included, so that the compiler does not warn of a header that is a main file
        source = Path(folder) / (str(path.relative_to(ROOT)).replace("/", "_") + ".cc")
        source.write_text(f'#include "{path}"\n')
    done = subprocess.run([compiler, "-fsyntax-only", *flags, str(source)], capture_output=True, text=True,
                          timeout=SECONDS_MAX, cwd=ROOT)
    return f"{path.relative_to(ROOT)} does not compile alone:\n{done.stderr}" if done.returncode else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--compiler", default="clang++")
    parser.add_argument("--of", type=int, default=1)
    parser.add_argument("paths", nargs="*", type=Path)
    arguments = parser.parse_args()
    flags = with_lone_headers(flags_by_source(arguments.build.resolve()))
    # Sources of tests are left out: there are as many as of everything else, and nobody builds upon them.
    wanted = {path.resolve() for path in arguments.paths} or {
        path for path in flags if path.suffix == ".h" or not is_test(path.relative_to(ROOT))}
    if not arguments.paths:
        wanted = set(sorted(wanted)[commits() % arguments.of::arguments.of])
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda path: problems_of(arguments.compiler, path, flags[path], folder), sorted(wanted)))
    problems = [problem for problem in found if problem]
    print("\n".join(problems))
    print(f"{len(wanted)} files, {len(problems)} do not compile alone")
    return 1 if problems or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
