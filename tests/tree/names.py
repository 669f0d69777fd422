"""One name, one meaning: no two types and no two headers have the same name."""

import re
from collections import defaultdict

from tree import is_test

# softverbs builds alone, so it has headers of its own that mean the same as those of common/base.
SAME_MEANING = {"mutex.h", "page_size.h"}
# A type at the beginning of a line is in no class: those have two spaces before it.
TYPE = re.compile(r"^(?:template <[^\n]*>\n)?(?:class|struct|union|enum class|enum)\s+(?:[A-Z][A-Z0-9_]*(?:\((?:[^()\n]|\([^()\n]*\))*\))?\s+)?"
                  r"([A-Z]\w*)(?!\w|::)[^;={}()]*\{", re.MULTILINE)
ALIAS = re.compile(r"^using ([A-Z]\w*) =", re.MULTILINE)


def counts(path):
    """Tests and examples stand alone."""
    return not is_test(path) and path.parts[:2] != ("client", "example")


def check_types(tree):
    """A type that a header defines has a name that no other file gives to a type of its own. Types that only sources have may
    share a name, and so may types inside of classes."""
    in_headers, in_sources = defaultdict(set), defaultdict(set)
    for path in filter(counts, tree.sources):
        code = tree.code(path)
        names = TYPE.findall(code)
        if path.suffix == ".h":
            names += ALIAS.findall(code)
        for name in names:
            (in_headers if path.suffix == ".h" else in_sources)[name].add(path)
    for name, headers in sorted(in_headers.items()):
        files = sorted(headers) + sorted(in_sources[name])
        if len(files) > 1 and not {path.name for path in files} <= SAME_MEANING:
            tree.found(f"{files[0]}: {name} is also a type of {', '.join(map(str, files[1:]))}")


def check_header_names(tree):
    headers = defaultdict(list)
    for path in filter(counts, tree.sources):
        # A header for C has the name of its counterpart for C++.
        if path.suffix == ".h" and path.name not in SAME_MEANING and path.parts[:-1] != ("client", "include", "gannet", "c"):
            headers[path.name].append(path)
    for paths in headers.values():
        if len(paths) > 1:
            tree.found(f"{paths[0]}: {', '.join(map(str, paths[1:]))} has the same name")
