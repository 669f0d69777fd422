"""Which folder may include which, and where tests belong."""

import re
from pathlib import Path

from tree import LAYERED, folder_of, is_test

TABLE = "docs/architecture.md"
LIBRARIES = {"infiniband": "verbs", "rdma": "verbs", "gflags": "gflags", "openssl": "libcrypto",
             "lua5.1": "lua"}
# One or several names in back quotes. The second cell may be empty.
NAMES = r"`[\w/-]+`(?:, `[\w/-]+`)*"
ROW = re.compile(rf"\| ({NAMES}) \| (?:({NAMES}) )?\|")


def allowed_includes(tree):
    """Reads the table whose header is `| folder | may include |`: folder -> set of folders."""
    lines = tree.text(Path(TABLE)).split("\n")
    begin = next((at for at, line in enumerate(lines) if line == "| folder | may include |"), None)
    if begin is None or lines[begin + 1] != "|---|---|":
        tree.found(f"{TABLE}: no table of what a folder may include")
        return {}
    allowed = {}
    for number, line in enumerate(lines[begin + 2:], begin + 3):
        if not line.startswith("|"):
            break
        row = ROW.fullmatch(line)
        if not row:
            tree.found(f"{TABLE}:{number}: no row of a folder and what it may include: {line}")
            continue
        may, names = (re.findall(r"`([^`]+)`", cell or "") for cell in (row.group(2), row.group(1)))
        for folder in names:
            if folder in allowed:
                tree.found(f"{TABLE}:{number}: a second row for {folder}")
            allowed[folder] = set(may)
        for name in names + may:
            if name not in LIBRARIES.values() and not (tree.root / name).is_dir():
                tree.found(f"{TABLE}:{number}: there is no folder {name}")
    return allowed


def check_includes(tree):
    allowed = allowed_includes(tree)
    for path in tree.sources:
        own = folder_of(path)
        if is_test(path):
            continue
        if own not in allowed:
            tree.found(f"{path}: folder {own} is not in the table of {TABLE}")
            continue
        for number, name in tree.includes(path):
            top = name.split("/")[0]
            other = LIBRARIES.get(top) or ("client/include" if top == "gannet" else None)
            if other is None and top in LAYERED + ("tests",):
                other = folder_of(name)
            if other is None or other == own or other in allowed[own]:
                continue
            if other == "gflags" and path.name == "main.cc":
                continue
            tree.found(f"{path}:{number}: {own} may not include {other} ({name})")
    check_cycles(tree, {folder: names & allowed.keys() for folder, names in allowed.items()})


def check_cycles(tree, graph):
    done, path = set(), []

    def visit(folder):
        if folder in path:
            tree.found("cycle of folders: " + " -> ".join(path[path.index(folder):] + [folder]))
        elif folder not in done:
            path.append(folder)
            for other in sorted(graph[folder]):
                visit(other)
            path.pop()
            done.add(folder)

    for folder in sorted(graph):
        visit(folder)


def check_tests(tree):
    for path in tree.tracked("tests/*"):
        parts = path.parts
        if parts[1] not in LAYERED:
            continue
        if len(parts) == 3 and path in tree.sources:
            tree.found(f"{path}: belongs into the folder of what it tests")
        elif len(parts) > 3 and parts[2] != "support" and not (tree.root / parts[1] / parts[2]).is_dir():
            tree.found(f"{path}: there is no {parts[1]}/{parts[2]} that it could test")
    for path in tree.sources:
        if path.parts[:2] == ("softverbs", "tests"):
            for number, name in tree.includes(path):
                if name.split("/")[0] in (*LAYERED, "gannet", "tests") and not name.startswith("softverbs/"):
                    tree.found(f"{path}:{number}: softverbs stands alone, so its tests may not include {name}")
