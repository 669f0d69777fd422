"""Guards, first includes, opening comments, lists in comments, lengths, and marks of unfinished work."""

import ast
import re

LINES_MAX = 800  # a file may be long if it is one thing: classes.py has the limits that matter
FUNCTION_LINES_MAX = 70
UNOPENED_LINES_MAX = 100
COLUMNS_MAX = 100  # of C++; .clang-format has the same
COMMENT = re.compile(r"^\s*//( *)(\S.*)")
ITEM = re.compile(r"(\d+\.|-) ")
# Split up, so that this file does not have them.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")


def check_guard(tree, path):
    name = re.sub(r"[^A-Z0-9]", "_", str(path).upper()) + "_"
    # softverbs stands alone, so its guards do not name Gannet.
    wanted = {name} if path.parts[0] == "softverbs" else {"GANNET_" + name, name}
    # A public header is found below its include folder.
    if "include" in path.parts:
        public = re.sub(r"[^A-Z0-9]", "_", "/".join(path.parts[path.parts.index("include") + 1:]).upper()) + "_"
        wanted.add(public)
    match = re.search(r"#ifndef (\w+)\n#define (\w+)\n", tree.text(path))
    if not match or match.group(1) != match.group(2) or match.group(1) not in wanted:
        tree.found(f"{path}: the guard is not {sorted(wanted)[0]}")


def check_first_include(tree, path):
    own = path.with_suffix(".h")
    if not (tree.root / own).is_file():
        return
    first = next(iter(tree.includes(path)), (1, "nothing"))
    if first[1] != str(own):
        tree.found(f"{path}:{first[0]}: includes {first[1]} before its own header {own}")


def check_headers(tree):
    for path in tree.sources:
        if path.suffix == ".h":
            check_guard(tree, path)
        else:
            check_first_include(tree, path)


def check_openings(tree):
    """A source that is not short says at its beginning what it is for."""
    for path in tree.sources:
        if path.suffix != ".cc" or path.parts[0] not in ("server", "client"):
            continue
        text = tree.text(path)
        if text.count("\n") > UNOPENED_LINES_MAX and not text.startswith("//"):
            tree.found(f"{path}: more than {UNOPENED_LINES_MAX} lines, and no opening comment")


def check_lists(tree):
    """clang-format leaves lists in comments as they are. So their lines are not too long, and none is torn: the lines of
    an item are indented more than its mark."""
    for path in tree.sources:
        item = None  # how far the mark is indented of the item in which this line is
        lines = [COMMENT.match(line) for line in tree.text(path).split("\n")]
        for number, (match, behind) in enumerate(zip(lines, lines[1:] + [None]), 1):
            indent = len(match.group(1)) if match else None
            if match and ITEM.match(match.group(2)):
                item = indent
            elif match and indent == item and behind and len(behind.group(1)) > item and not ITEM.match(behind.group(2)):
                tree.found(f"{path}:{number}: an item of a list in a comment is torn")
            elif not match or item is None or indent <= item:
                item = None
            if match and (item is not None or indent > 2) and len(match.group()) > COLUMNS_MAX:
                tree.found(f"{path}:{number}: a line of a comment has more than {COLUMNS_MAX} columns")


def check_lengths(tree):
    for path in tree.sources:
        lines = tree.text(path).count("\n")
        if lines > LINES_MAX:
            tree.found(f"{path}: {lines} lines, a source has at most {LINES_MAX}")


def check_function_lengths(tree):
    for path in tree.sources:
        for function in tree.functions(path) or ():
            if function.body:
                check_length(tree, path, function.label, tree.line(path, function.begin), tree.line(path, function.end))
    for path in tree.tracked("*.py"):
        for node in ast.walk(ast.parse(tree.text(path))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                check_length(tree, path, node.name, node.lineno, node.end_lineno)


def check_length(tree, path, label, first, last):
    lines = last - first + 1
    if lines > FUNCTION_LINES_MAX:
        tree.found(f"{path}:{first}: {label} has {lines} lines, a function has at most {FUNCTION_LINES_MAX}")


def check_unfinished(tree):
    for path in tree.sources + tree.tracked("*.txt", "*.cmake", "*.md", "*.py", "*.sh", "dev"):
        for number, line in enumerate(tree.text(path).split("\n"), 1):
            # A template of mkdtemp.
            if UNFINISHED.search(line.replace("-XXXXXX", "")):
                tree.found(f"{path}:{number}: unfinished work: {line.strip()}")
