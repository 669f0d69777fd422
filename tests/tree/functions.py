"""Functions that are declared and not defined, and functions that nobody calls.

Goes by names. It misses a function if another one of its name is called where it could be, and never
takes a function for unused that is used.
"""

import re
from collections import Counter, defaultdict
from pathlib import Path

from tree import is_test

# Called by templates of libraries.
CALLED_BY_LIBRARIES = {"PrintTo"}


def check_braces(tree):
    for path in tree.sources:
        if tree.functions(path) is None:
            tree.found(f"{path}: a brace has no partner. If #if and #else both open one, move it out of them")


def check_definitions(tree):
    """A class declares a function once, so each declaration in it needs a definition of its own."""
    defined, names = Counter(), set()
    for path in tree.sources:
        for function in tree.functions(path) or ():
            if function.body:
                defined[function.owner, function.name] += 1
                names.add(function.name)
    for path in tree.tracked("*.c", "*.in"):  # templates of sources, too
        names.update(re.findall(r"\b(\w+)\(", tree.text(path)))
    for path in tree.sources:
        if path.suffix != ".h":
            continue
        declared = defaultdict(list)
        for function in tree.functions(path) or ():
            if function.name and not function.body:
                declared[function.owner, function.name].append(function)
        for (owner, name), functions in declared.items():
            missing = len(functions) > defined[owner, name] if owner else name not in names
            if missing:
                tree.found(f"{path}:{tree.line(path, functions[0].at)}: {functions[0].label} is declared and not defined")


def files_that_see(tree, files):
    """Returns header -> the files that include it, directly or not."""
    known = set(files)
    included = {}
    for path in files:
        names = [name for _, name in tree.includes(path)]
        places = [[Path(name), path.parent / name, "client/include" / Path(name), "softverbs/include" / Path(name)]
                  for name in names]
        included[path] = [next(place for place in of_name if place in known)
                          for of_name in places if any(place in known for place in of_name)]
    seen_by = defaultdict(set)
    for path in files:
        seen, ahead = set(), [path]
        while ahead:
            one = ahead.pop()
            if one not in seen:
                seen.add(one)
                seen_by[one].add(path)
                ahead += included[one]
    return seen_by


def files_that_name(tree, files):
    """Returns name -> the files that have it, other than where a function of that name is declared or defined."""
    named_in = defaultdict(set)
    for path in files:
        words = Counter(re.findall(r"\b[A-Za-z_]\w*", tree.code(path)))
        if path.suffix != ".c":
            words.subtract(function.name for function in tree.functions(path) or ())
        for name, count in words.items():
            if count > 0:
                named_in[name].add(path)
    return named_in


def check_callers(tree):
    files = tree.sources + tree.tracked("*.c")
    seen_by, named_in = files_that_see(tree, files), files_that_name(tree, files)
    for path in tree.sources:
        if path.suffix != ".h":
            continue
        reported = set()
        for function in tree.functions(path) or ():
            name = function.name
            if not name or name in reported or name in CALLED_BY_LIBRARIES or re.search(r"\b(override|final)\b", function.head):
                continue
            # A template may call it where the header is not seen. Tests have such: the models.
            anywhere = is_test(path)
            if not named_in[name] if anywhere else named_in[name].isdisjoint(seen_by[path]):
                reported.add(name)
                tree.found(f"{path}:{tree.line(path, function.at)}: nobody calls {function.label}")
