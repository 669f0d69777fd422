"""The files of a tree that git knows or could know, and the problems that were found in them."""

import re
import subprocess
from functools import cache, cached_property
from pathlib import Path

import cpp

LAYERED = ("client", "common", "proxy", "server", "softverbs", "tools")  # these have a folder for each part


def is_test(path):
    """softverbs has its tests in a folder of its own."""
    parts = Path(path).parts
    return parts[0] == "tests" or parts[:2] == ("softverbs", "tests")


def folder_of(path):
    """Returns the folder whose includes are looked at. The server's are in rooms."""
    parts = Path(path).parts[:-1]
    depth = 3 if parts[:1] == ("server",) else 2
    return "/".join(parts[:depth]) if parts and parts[0] in LAYERED else "/".join(parts[:1]) or str(path)


class Tree:
    def __init__(self, root):
        self.root = Path(root)
        self.problems = []

    def found(self, problem):
        self.problems.append(problem)

    @cache
    def tracked(self, *patterns):
        command = ["git", "-C", str(self.root), "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
        return [Path(name) for name in names if name and (self.root / name).is_file()]

    @cached_property
    def sources(self):
        return self.tracked("*.cc", "*.h")

    @cache
    def text(self, path):
        return (self.root / path).read_text()

    @cache
    def includes(self, path):
        """Returns (line, what is included) for each #include."""
        matches = re.finditer(r'^[ \t]*#[ \t]*include[ \t]+[<"]([^>"\n]+)[>"]', self.text(path), re.MULTILINE)
        return [(self.line(path, match.start(1)), match.group(1)) for match in matches]

    @cache
    def functions(self, path):
        return cpp.functions_of(self.code(path))

    @cache
    def code(self, path):
        return cpp.without_literals(self.text(path))

    def line(self, path, offset):
        return self.text(path).count("\n", 0, offset) + 1
