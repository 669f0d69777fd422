"""How wide a class is, in how many sources it lies, what its constructors take, and how small a folder is.

A file may be long if it is one thing; a class may not be wide. What is over a limit today is in the
lists below with what it has, and may only shrink: a figure that is too large is a violation, too.
"""

import re
from collections import Counter, defaultdict
from pathlib import PurePath

from tree import is_test

METHODS_MAX = 30
PARAMETERS_MAX = 8
FILES_MIN = 3

# Class -> its methods.
WIDE = {"AsyncClient": 35, "Backup": 32, "BackupLink": 31, "Client": 45, "ClientSession": 37,
        "Engine": 42, "EtcdConfigStore": 43, "FetchSession": 32, "GroupView": 36,
        "IndexWalk": 36, "Joiner": 33, "Link": 37, "Lookup": 34, "Member": 32, "OpTable": 35,
        "RegionWalk": 39, "Server": 40, "ServerSet": 35, "Store": 77, "Writes": 51}
# Class -> the sources that define it.
SCATTERED = {"State": 2}
# Class -> what its constructor takes.
MUCH_TAKEN = {}
# Folders with fewer sources.
SMALL = {"proxy", "proxy/http", "proxy/walk", "server", "server/main/flags", "softverbs/control", "softverbs/include/softverbs",
         "softverbs/simulation", "tools/build_stamp"}


def counts(path):
    return not is_test(path)


def parameters_in(head):
    """Returns how many parameters the list in the first parentheses of `head` has."""
    depth, parameters, some = 0, 1, False
    begin = head.find("(")
    for at, mark in enumerate(head[begin:], begin):
        if mark in "(<[{":
            depth += 1
        elif mark in ")]}" or (mark == ">" and head[at - 1] != "-"):
            depth -= 1
            if depth == 0:
                break
        elif mark == "," and depth == 1:
            parameters += 1
        elif not mark.isspace():
            some = True
    return parameters if some else 0


def check_known(tree, what, limit, found, known, places):
    """Expects each class of `found` to be within the limit, or at what `known` has for it."""
    for name, count in sorted(found.items()):
        if count > max(limit, known.get(name, 0)):
            tree.found(f"{places[name]}: {name} has {count} {what}, at most {max(limit, known.get(name, 0))} are allowed")
    for name, count in sorted(known.items()):
        now = found.get(name, 0)
        if now < count:
            tree.found(f"tests/tree/classes.py: {name} has {now} {what} now: put that in the place of {count}, or take it out "
                       f"if it is {limit} or fewer")


def check_methods(tree, known=None):
    """A constructor and an operator are no methods, nor is what has `= default`."""
    methods, places = Counter(), {}
    for path in filter(counts, tree.sources):
        if path.suffix != ".h":
            continue
        seen = set()
        for function in tree.functions(path) or ():
            inside = function.owner and not function.head[:function.at - function.begin].rstrip().endswith("::")
            if function.name and inside and (function.owner, function.head) not in seen:
                seen.add((function.owner, function.head))
                methods[function.owner] += 1
                places[function.owner] = path
    check_known(tree, "methods", METHODS_MAX, methods, WIDE if known is None else known, places)


def hot_sources(tree):
    """Returns the sources of the data path, which are compiled with flags of their own, and so are apart from the others."""
    hot = set()
    for path in tree.tracked("*CMakeLists.txt"):
        for names in re.findall(r"gannet_hot_sources\(([^)]*)\)", tree.text(path)):
            hot.update(path.parent / name for name in names.split())
    return hot


def check_sources(tree, known=None):
    """A class is defined in one source, what is hot of it apart, in a header or another source."""
    sources, places, hot = defaultdict(set), {}, hot_sources(tree)
    for path in filter(counts, tree.sources):
        for function in tree.functions(path) or ():
            owner = function.owner
            if path.suffix == ".h" and owner:
                places.setdefault(owner, path)
            elif owner and function.body and path not in hot and re.search(rf"\b{owner}::", function.head):
                sources[owner].add(path)
    found = {name: len(files) for name, files in sources.items() if name in places}
    check_known(tree, "sources", 1, found, SCATTERED if known is None else known, places)


def check_constructors(tree, known=None):
    taken, places = Counter(), {}
    for path in filter(counts, tree.sources):
        for function in tree.functions(path) or ():
            if function.owner and re.match(rf"(?:explicit\s+|constexpr\s+)*(?:{function.owner}::)?{function.owner}\s*\(", function.head):
                many = parameters_in(function.head)
                if many > taken[function.owner]:
                    taken[function.owner], places[function.owner] = many, path
    check_known(tree, "parameters of a constructor", PARAMETERS_MAX, taken, MUCH_TAKEN if known is None else known, places)


def check_folders(tree, known=None):
    known = SMALL if known is None else known
    files = Counter(str(PurePath(path).parent) for path in filter(counts, tree.sources))
    for folder, count in sorted(files.items()):
        if count < FILES_MIN and folder not in known:
            tree.found(f"{folder}: has {count} sources, a folder has at least {FILES_MIN}")
    for folder in sorted(known):
        if not 0 < files[folder] < FILES_MIN:
            tree.found(f"tests/tree/classes.py: {folder} is no small folder: take it out")
