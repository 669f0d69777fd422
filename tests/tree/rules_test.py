#!/usr/bin/env python3
"""Checks rules of this tree that need no compiler. Fails with one line for each violation.

  1. A folder includes only what the table in docs/architecture.md allows, and folders form no cycle.
  2. A header's guard is its path. A source's first include is the header of its name, so that the
     header compiles alone (alone.py compiles them). Files keep to the length limits below.
  3. No file has marks of unfinished work.
  4. Links in documents lead to files, and their #fragments to headings. Paths, file:symbol pairs,
     and `CamelCase` names of types and functions in documents exist.
  5. tests/ mirrors the tree, and tests of softverbs use nothing of the store.
  6. Each mutant of the simulation applies to the sources, and docs/testing.md lists it.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERED = ("client", "common", "proxy", "server", "softverbs", "tools")  # these have a folder for each part
LIBRARIES = {"infiniband": "verbs", "rdma": "verbs", "gflags": "gflags", "openssl": "libcrypto"}
LINES_MAX = {"header": 350, "source": 450, "test": 500}
# Split up, so that this file does not have them.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")

problems = []


def tracked(*patterns):
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    return [Path(name) for name in names if name and (ROOT / name).is_file()]


def folder_of(path):
    parts = Path(path).parts
    return "/".join(parts[:2]) if parts[0] in LAYERED and len(parts) > 2 else parts[0]


def allowed_includes():
    """Reads the table whose header is `| folder | may include |`: folder -> set of folders."""
    allowed = {}
    in_table = False
    for line in (ROOT / "docs/architecture.md").read_text().split("\n"):
        if re.match(r"\| folder \| .*may include", line):
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and not line.startswith("|---"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            names = re.findall(r"`([^`]+)`", cells[-1])
            for folder in re.findall(r"`([^`]+)`", cells[0]):
                allowed[folder.rstrip("/")] = {name.rstrip("/") for name in names}
    return allowed


def includes_of(path):
    for number, line in enumerate((ROOT / path).read_text().split("\n"), 1):
        match = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
        if match:
            yield number, match.group(1)


def check_includes(sources):
    allowed = allowed_includes()
    if not allowed:
        problems.append("docs/architecture.md: no table of what a folder may include")
    for path in sources:
        own = folder_of(path)
        if own == "tests":
            continue
        if own not in allowed:
            problems.append(f"{path}: folder {own} is not in the table of docs/architecture.md")
            continue
        for number, name in includes_of(path):
            top = name.split("/")[0]
            other = LIBRARIES.get(top) or ("client/include" if top == "gannet" else None)
            if other is None and top in LAYERED + ("tests",):
                other = folder_of(name)
            if other is None or other == own or other in allowed[own]:
                continue
            if other == "gflags" and path.name == "main.cc":
                continue
            problems.append(f"{path}:{number}: {own} may not include {other} ({name})")
    check_cycles({folder: names & allowed.keys() for folder, names in allowed.items()})


def check_cycles(graph):
    done, path = set(), []

    def visit(folder):
        if folder in path:
            problems.append("cycle of folders: " + " -> ".join(path[path.index(folder):] + [folder]))
        elif folder not in done:
            path.append(folder)
            for other in sorted(graph[folder]):
                visit(other)
            path.pop()
            done.add(folder)

    for folder in sorted(graph):
        visit(folder)


def check_guard(path, text):
    name = re.sub(r"[^A-Z0-9]", "_", str(path).upper()) + "_"
    # softverbs stands alone, so its guards do not name Gannet.
    wanted = {name} if path.parts[0] == "softverbs" else {"GANNET_" + name, name}
    # A public header is found below its include folder.
    if "include" in path.parts:
        public = re.sub(r"[^A-Z0-9]", "_", "/".join(path.parts[path.parts.index("include") + 1:]).upper()) + "_"
        wanted.add(public)
    match = re.search(r"#ifndef (\w+)\n#define (\w+)\n", text)
    if not match or match.group(1) != match.group(2) or match.group(1) not in wanted:
        problems.append(f"{path}: the guard is not {sorted(wanted)[0]}")


def check_first_include(path):
    own = path.with_suffix(".h")
    if not (ROOT / own).is_file():
        return
    first = next(includes_of(path), (1, "nothing"))
    if first[1] != str(own):
        problems.append(f"{path}:{first[0]}: includes {first[1]} before its own header {own}")


def check_files(sources):
    for path in sources:
        text = (ROOT / path).read_text()
        kind = "test" if path.parts[0] == "tests" else "header" if path.suffix == ".h" else "source"
        lines = text.count("\n")
        if lines > LINES_MAX[kind]:
            problems.append(f"{path}: {lines} lines, a {kind} has at most {LINES_MAX[kind]}")
        if path.suffix == ".h":
            check_guard(path, text)
        else:
            check_first_include(path)
    for path in sources + tracked("*.txt", "*.cmake", "*.md", "*.py", "*.sh", "dev"):
        for number, line in enumerate((ROOT / path).read_text().split("\n"), 1):
            # A template of mkdtemp.
            if UNFINISHED.search(line.replace("-XXXXXX", "")):
                problems.append(f"{path}:{number}: unfinished work: {line.strip()}")


def anchors_of(text):
    """The fragments that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_documents():
    sources = {str(path) for path in tracked("*.cc", "*.h")}
    names = set()
    for path in sources | {str(path) for path in tracked("*.py")}:
        names.update(re.findall(r"\b[A-Z]\w+", (ROOT / path).read_text()))
    for document in tracked("*.md"):
        text = (ROOT / document).read_text()
        for name in re.findall(r"`(?:\w+::)*([A-Z][a-z]+[A-Z]\w*)`", text):
            if name not in names:
                problems.append(f"{document}: no {name} in the sources")
        for target, heading in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text):
            if "://" in target:
                continue
            path = ROOT / document.parent / target if target else ROOT / document
            if not path.exists():
                problems.append(f"{document}: no file {target}")
            elif heading and heading not in anchors_of(path.read_text()):
                problems.append(f"{document}: no heading #{heading} in {target or document}")
        for name in re.findall(r"`((?:client|common|docs|packaging|proxy|server|softverbs|tests|tools)/[\w./+-]*)`", text):
            if not (ROOT / name).exists():
                problems.append(f"{document}: no file {name}")
        for name, symbol in re.findall(r"`([\w/.]+\.(?:cc|h)):(\w[\w:~]*)`", text):
            files = [path for path in sources if path == name or path.endswith("/" + name)]
            last = symbol.split("::")[-1]
            if not any(re.search(rf"\b{re.escape(last)}\b", (ROOT / path).read_text()) for path in files):
                problems.append(f"{document}: no {symbol} in {name}")


def check_tests(sources):
    for path in tracked("tests/*"):
        parts = path.parts
        if parts[1] not in LAYERED:
            continue
        if len(parts) == 3 and path in sources:
            problems.append(f"{path}: belongs into the folder of what it tests")
        elif len(parts) > 3 and parts[2] != "support" and not (ROOT / parts[1] / parts[2]).is_dir():
            problems.append(f"{path}: there is no {parts[1]}/{parts[2]} that it could test")
    allowed = ("softverbs/", "tests/softverbs/", "tests/support/")
    for path in sources:
        if path.parts[:2] == ("tests", "softverbs"):
            for number, name in includes_of(path):
                if name.split("/")[0] in LAYERED + ("tests",) and not name.startswith(allowed):
                    problems.append(f"{path}:{number}: a test of softverbs may not include {name}")


def check_mutants():
    listed = (ROOT / "docs/testing.md").read_text()
    mutants = tracked("tests/simulation/mutants/*.patch")
    if not mutants:
        problems.append("tests/simulation/mutants: no patches found")
    for path in mutants:
        # Compares context exactly, as tests/simulation/mutants/run does.
        command = ["git", "-C", str(ROOT), "apply", "--check", str(ROOT / path)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            problems.append(f"{path}: does not apply: {result.stderr.splitlines()[0]}")
        title = (ROOT / path).read_text().partition("\n")[0]
        if f"| {title} |" not in listed:
            problems.append(f"{path}: docs/testing.md has no line for \"{title}\"")


def main():
    sources = tracked("*.cc", "*.h")
    if not sources:
        problems.append("no sources found")
    check_includes(sources)
    check_files(sources)
    check_documents()
    check_tests(sources)
    check_mutants()
    for problem in problems:
        print(problem)
    print(f"{len(sources)} sources, {len(problems)} violations")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
