"""What documents name exists: links, headings, paths and symbols. What mutants change does, too."""

import re
import subprocess


PLACES = "client|common|docs|packaging|proxy|server|softverbs|tests|tools"


def anchors_of(text):
    """The fragments that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(tree, document, text):
    for target, heading in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text):
        if "://" in target:
            continue
        path = tree.root / document.parent / target if target else tree.root / document
        if not path.exists():
            tree.found(f"{document}: no file {target}")
        elif heading and heading not in anchors_of(path.read_text()):
            tree.found(f"{document}: no heading #{heading} in {target or document}")


def check_documents(tree):
    sources = {str(path): path for path in tree.sources}
    names = set()
    for path in tree.sources + tree.tracked("*.py"):
        names.update(re.findall(r"\b[A-Z]\w+", tree.text(path)))
    for document in tree.tracked("*.md"):
        text = tree.text(document)
        for name in re.findall(r"`(?:\w+::)*([A-Z][a-z]+[A-Z]\w*)`", text):
            if name not in names:
                tree.found(f"{document}: no {name} in the sources")
        check_links(tree, document, text)
        # softverbs stands alone, so its documents name its own files, from its folder on.
        root = tree.root / "softverbs" if document.parts[0] == "softverbs" else tree.root
        for name in re.findall(rf"`((?:{PLACES})/[\w./+-]*)`", text):
            if not (root / name).exists():
                tree.found(f"{document}: no file {name}")
        for name, symbol in re.findall(r"`([\w/.]+\.(?:cc|h)):(\w[\w:~]*)`", text):
            files = [path for path in sources if path == name or path.endswith("/" + name)]
            last = symbol.split("::")[-1]
            if not any(re.search(rf"\b{re.escape(last)}\b", tree.text(sources[path])) for path in files):
                tree.found(f"{document}: no {symbol} in {name}")


def check_flags_of_members(tree):
    """Each flag of kvserver is the group's or a member's own. docs/cluster.md says which, and why."""
    if "server/flags/server_flags.cc" not in {str(path) for path in tree.sources}:
        return
    _, _, rest = tree.text("docs/cluster.md").partition("\n## What members do alike\n")
    section = rest.partition("\n## ")[0]
    for flag in re.findall(r"^DEFINE_\w+\(\s*(\w+)", tree.text("server/flags/server_flags.cc"), re.MULTILINE):
        if f"`--{flag}`" not in section:
            tree.found(f"docs/cluster.md: \"What members do alike\" does not say whose --{flag} is")


STATISTICS = "common/protocol/stats_reply.h"


def check_statistics(tree):
    """Each statistic has a row in a table of the documents, and a metric."""
    if STATISTICS not in {str(path) for path in tree.sources}:
        return
    rows = "\n".join(re.findall(r"^\|.*$", "\n".join(tree.text(path) for path in tree.tracked("docs/*.md")), re.MULTILINE))
    metrics = "\n".join(tree.text(path) for path in tree.tracked("server/http/*.cc"))
    _, _, listed = tree.text(STATISTICS).partition("#define GANNET_STATISTICS(X)")
    for name in re.findall(r"\bX\((\w+)\)", listed):
        if f"`{name}`" not in rows:
            tree.found(f"{STATISTICS}: no table in docs has a row for `{name}`")
        # Requests are told by opcode.
        if name != "rpcs" and not re.search(rf"\bstats\.{name}\b", metrics):
            tree.found(f"{STATISTICS}: server/http shows no {name}")


def check_mutants(tree):
    mutants = tree.tracked("tests/simulation/mutants/*.patch")
    if not mutants:
        tree.found("tests/simulation/mutants: no patches found")
        return
    listed = (tree.root / "docs/mutants.md").read_text()
    for path in mutants:
        # Compares context exactly, as tests/simulation/mutants/run does.
        command = ["git", "-C", str(tree.root), "apply", "--check", str(tree.root / path)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            tree.found(f"{path}: does not apply: {result.stderr.splitlines()[0]}")
        title = tree.text(path).partition("\n")[0]
        if f"| {title} |" not in listed:
            tree.found(f"{path}: docs/mutants.md has no line for \"{title}\"")
