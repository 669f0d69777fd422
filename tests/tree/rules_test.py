#!/usr/bin/env python3
"""Checks rules of this tree that need no compiler. Fails with one line for each violation.

  1. A folder includes only what the table in docs/architecture.md allows, and folders form no cycle.
  2. A header's guard is its path. A source's first include is the header of its name, so that the
     header compiles alone (alone.py compiles them). Files and functions keep to the limits of files.py.
  3. No file has marks of unfinished work.
  4. Links in documents lead to files, and their #fragments to headings. Paths, file:symbol pairs,
     and `CamelCase` names of types and functions in documents exist. Pages and headings that sources
     cite exist. A page has at most 300 lines, and prose at most 120 columns. Each row of
     docs/where-to-look.md names a function that is there, and a page. docs/folders.md has each folder.
  5. tests/ mirrors the tree, and tests of softverbs use nothing of the store.
     Each flag of kvserver is in docs/cluster.md's tables of what members do alike, or do not.
  6. Each mutant of the simulation applies to the sources, and docs/mutants.md lists it.
  7. What a header declares is defined, and somebody calls it.
  8. No two types and no two headers have the same name.
  9. A class is not wide and lies in one source, a constructor takes few things, a folder is not tiny (classes.py).
 10. Two files ask the system for the time, and who names the machine's clock is listed in clocks.py.

rules_can_fail_test.py shows of each rule that it can fail.
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True  # the folder is a source folder

import classes
import clocks
import documents
import files
import folders
import functions
import names
from tree import Tree

RULES = (
    folders.check_includes,
    folders.check_tests,
    files.check_headers,
    files.check_openings,
    files.check_lists,
    files.check_lengths,
    files.check_function_lengths,
    files.check_unfinished,
    documents.check_documents,
    documents.check_pages,
    documents.check_citations,
    documents.check_index,
    documents.check_folders,
    documents.check_flags_of_members,
    documents.check_statistics,
    documents.check_requests,
    documents.check_mutants,
    functions.check_braces,
    functions.check_definitions,
    functions.check_callers,
    names.check_types,
    names.check_header_names,
    classes.check_methods,
    classes.check_sources,
    classes.check_constructors,
    classes.check_folders,
    clocks.check_clocks,
)


def main():
    tree = Tree(Path(__file__).resolve().parents[2])
    if not tree.sources:
        tree.found("no sources found")
    for rule in RULES:
        rule(tree)
    print("\n".join(tree.problems))
    print(f"{len(tree.sources)} sources, {len(tree.problems)} violations")
    return 1 if tree.problems else 0


if __name__ == "__main__":
    sys.exit(main())
