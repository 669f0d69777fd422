"""What documents name exists: links, headings, paths and symbols. What mutants change does, too."""

import re
import subprocess
from pathlib import Path

from tree import folder_of


PAGE_LINES_MAX = 300
PROSE_COLUMNS_MAX = 120
PLACES = "client|common|docs|packaging|proxy|server|softverbs|tests|tools"


def place_of(path):
    return "/".join(path.parts[:2]) if path.parts[0] == "tests" else folder_of(path)


def headings_of(text):
    return re.findall(r"^#+ (.+)$", text, re.MULTILINE)


def anchors_of(text):
    """The fragments that GitHub gives to a page's headings."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings_of(text)}


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


def prose_of(text):
    """(number, line) of all lines but those of tables, code, and what a program measured and wrote into the page."""
    fenced = measured = False
    for number, line in enumerate(text.split("\n"), 1):
        fence = line.lstrip().startswith("```")
        mark = re.match(r"<!-- measured by .*: (begin|end) -->", line)
        if mark:
            measured = mark.group(1) == "begin"
        fenced ^= fence
        if not (fence or fenced or measured or line.startswith(("|", "    "))):
            yield number, line


def check_pages(tree):
    """A page has few lines, and its prose fits a window. The change log only grows, so it is no page."""
    for document in tree.tracked("*.md"):
        if document.name == "CHANGELOG.md":
            continue
        text = tree.text(document)
        lines = text.count("\n")
        if lines > PAGE_LINES_MAX:
            tree.found(f"{document}: {lines} lines, a page has at most {PAGE_LINES_MAX}")
        for number, line in prose_of(text):
            columns = len(re.sub(r"\]\([^)]*\)", "]", line))  # where a link leads to does not count
            if columns > PROSE_COLUMNS_MAX:
                tree.found(f"{document}:{number}: {columns} columns, prose has at most {PROSE_COLUMNS_MAX}")


def check_citations(tree):
    """The pages that sources cite exist, and so do the headings: docs/group.md, "Sessions"."""
    for path in tree.sources + tree.tracked("*.txt", "*.cmake", "*.yaml", "*.sh", "dev"):
        text = re.sub(r"\n\s*(?://|#)\s*", " ", tree.text(path))  # a comment may break a line within a citation
        for page, heading in re.findall(r"\b(docs/[\w./-]+\.md)(?:, \"([^\"]+)\")?", text):
            if not (tree.root / page).is_file():
                tree.found(f"{path}: there is no {page}")
            elif heading and heading not in (found.replace("`", "") for found in headings_of(tree.text(page))):
                tree.found(f"{path}: no heading \"{heading}\" in {page}")


def check_index(tree):
    """Each row of the index of decisions names a place in the code and a page."""
    index = Path("docs/where-to-look.md")
    rows = [line for line in tree.text(index).split("\n") if line.startswith("| ")] if index in tree.tracked("*.md") else []
    rows = [row for row in rows if not row.startswith("| question |")]
    if not rows:
        tree.found(f"{index}: no rows found")
    for row in rows:
        question = row.split("|")[1].strip()
        places = re.findall(r"`([\w/.]+):([\w:~]+)`", row)
        if not places or not re.search(r"\]\([\w/-]+\.md(?:#[^)]*)?\)", row):
            tree.found(f"{index}: \"{question}\" has no place `file:Function`, or no page")
        for name, symbol in places:
            path, last = Path(name), symbol.split("::")[-1]
            if path not in tree.sources or not re.search(rf"\b{re.escape(last)}\b", tree.code(path)):
                tree.found(f"{index}: \"{question}\": no {symbol} in {name}")


def check_folders(tree):
    """Each folder with sources has a paragraph that begins with its name, and no other has one."""
    page = Path("docs/folders.md")
    text = tree.text(page) if page in tree.tracked("*.md") else ""
    told = set()
    for begin in re.findall(r"^\*\*`.*(?:\n.+)*", text, re.MULTILINE):
        told.update(re.findall(r"\*\*`([\w/]+)`\*\*", begin))
    folders = {place_of(path) for path in tree.sources + tree.tracked("*.py", "*.sh") if len(path.parts) > 1}
    for folder in sorted(folders - told):
        tree.found(f"{page}: no paragraph for {folder}")
    for folder in sorted(told - folders):
        tree.found(f"{page}: a paragraph for {folder}, which has no sources")


def check_flags_of_members(tree):
    """Each flag of kvserver is the group's or a member's own. docs/cluster.md says which, and why."""
    if "server/main/flags/server_flags.cc" not in {str(path) for path in tree.sources}:
        return
    _, _, rest = tree.text("docs/cluster.md").partition("\n## What members do alike\n")
    section = rest.partition("\n## ")[0]
    for flag in re.findall(r"^DEFINE_\w+\(\s*(\w+)", tree.text("server/main/flags/server_flags.cc"), re.MULTILINE):
        if f"`--{flag}`" not in section:
            tree.found(f"docs/cluster.md: \"What members do alike\" does not say whose --{flag} is")


STATISTICS = "common/protocol/stats_reply.h"


def check_statistics(tree):
    """Each statistic has a row in a table of the documents, and a metric."""
    if STATISTICS not in {str(path) for path in tree.sources}:
        return
    rows = "\n".join(re.findall(r"^\|.*$", "\n".join(tree.text(path) for path in tree.tracked("docs/*.md")), re.MULTILINE))
    metrics = "\n".join(tree.text(path) for path in tree.tracked("server/main/http/*.cc"))
    _, _, listed = tree.text(STATISTICS).partition("#define GANNET_STATISTICS(X)")
    for name in re.findall(r"\bX\((\w+)\)", listed):
        if f"`{name}`" not in rows:
            tree.found(f"{STATISTICS}: no table in docs has a row for `{name}`")
        # Requests are told by opcode.
        if name != "rpcs" and not re.search(rf"\bstats\.{name}\b", metrics):
            tree.found(f"{STATISTICS}: server/main/http shows no {name}")


REQUESTS = "common/protocol/opcode.h"


def check_requests(tree):
    """The document of the bytes has each request's number and name."""
    if REQUESTS not in {str(path) for path in tree.sources}:
        return
    row = next((line for line in tree.text("docs/protocol-messages.md").split("\n") if line.startswith("| 0 | 1 | opcode |")), "")
    told = re.findall(r"(\d+) ([a-z ]*[a-z])", row)
    listed = re.findall(r"\bX\(\w+, (\d+), (\w+), k\w+\)", tree.text(REQUESTS))
    differ = {(number, called.replace("_", " ")) for number, called in listed} ^ set(told)
    if differ:
        names = ", ".join(f"{number} {called}" for number, called in sorted(differ))
        tree.found(f"docs/protocol-messages.md: the row of opcodes and {REQUESTS} differ in {names}")


def check_mutants(tree):
    mutants = tree.tracked("tests/simulation/mutants/*.patch")
    if not mutants:
        tree.found("tests/simulation/mutants: no patches found")
        return
    listed = (tree.root / "docs/mutants.md").read_text()
    for path in mutants:
        # As tests/simulation/mutants/run does. `git apply` takes more.
        command = ["patch", "--dry-run", "--strip=1", "--fuzz=0", "--forward", f"--directory={tree.root}",
                   f"--input={tree.root / path}"]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
        if result.returncode != 0:
            tree.found(f"{path}: does not apply: {' '.join(result.stdout.split())}")
        title = tree.text(path).partition("\n")[0]
        if f"| {title} |" not in listed:
            tree.found(f"{path}: docs/mutants.md has no line for \"{title}\"")
