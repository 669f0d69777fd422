#!/usr/bin/env python3
"""Shows of each rule of rules_test.py what it finds in a small tree that breaks it, and that it finds
nothing in one that does not."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import classes
import clocks
import documents
import files
import folders
import functions
import names
import rules_test
from tree import Tree

TABLE_HEAD = "| folder | may include |\n|---|---|\n"
TABLE = TABLE_HEAD + "| `common/base` | |\n| `server/heap`, `server/store` | `common/base` |\n"


def guarded(name, text=""):
    guard = name.upper().replace("/", "_").replace(".", "_") + "_"
    return f"#ifndef {guard}\n#define {guard}\n{text}#endif\n"


class RulesTest(unittest.TestCase):
    tested = set()

    def problems(self, rule, contents, *arguments):
        """Returns what the rule finds in a tree of these files: a list of lines."""
        RulesTest.tested.add(rule)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["git", "init", "-q", folder], check=True)
            for name, text in contents.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            tree = Tree(folder)
            rule(tree, *arguments)
            return tree.problems

    def expect(self, rule, contents, *wanted):
        """Expects one problem for each of `wanted`, which is a part of it."""
        found = self.problems(rule, contents)
        self.assertEqual(len(found), len(wanted), found)
        for problem, part in zip(found, wanted):
            self.assertIn(part, problem)

    def includes(self, table, source, *wanted, name="server/heap/heap.cc"):
        tree = {"docs/architecture.md": table, name: source, "common/base/a.h": "", "server/store/a.h": "", "server/heap/a.h": ""}
        self.expect(folders.check_includes, tree, *wanted)

    def test_a_folder_includes_what_its_row_allows(self):
        self.includes(TABLE, '#include "common/base/a.h"\n#include "server/heap/a.h"\n')

    def test_a_folder_includes_nothing_else(self):
        self.includes(TABLE, '\n  # include "server/store/a.h"\n', "server/heap/heap.cc:2: server/heap may not include server/store")

    def test_a_library_must_be_allowed_too(self):
        self.includes(TABLE, "#include <infiniband/verbs.h>\n", "may not include verbs")

    def test_only_main_includes_gflags_without_being_allowed_to(self):
        self.includes(TABLE, "#include <gflags/gflags.h>\n", "may not include gflags")
        self.includes(TABLE, "#include <gflags/gflags.h>\n", name="server/heap/main.cc")

    def test_each_folder_has_a_row(self):
        self.includes(TABLE, "", "folder server/disk is not in the table", name="server/disk/disk.cc")

    def test_there_is_a_table(self):
        self.expect(folders.allowed_includes, {"docs/architecture.md": "# Architecture\n"}, "no table")

    def test_a_row_has_two_cells_of_names(self):
        for row in ("| `server/log` | where lines go | `common/base` |", "| `server/log` | base |", "| server/log | `common/base` |",
                    "| `server/log` | `common/base`, verbs |", "| `server/log` | `common/base`", "| `server/log` `common/base` | |"):
            self.includes(TABLE + row + "\n| `common` | |\n", "", f"docs/architecture.md:5: no row of a folder and what it may include: {row}")

    def test_a_row_names_what_exists_and_once(self):
        self.includes(TABLE + "| `server/gone` | |\n", "", "there is no folder server/gone")
        self.includes(TABLE + "| `common` | `common/gone` |\n", "", "there is no folder common/gone")
        self.includes(TABLE + "| `server/heap` | |\n", "", "a second row for server/heap")

    def test_folders_form_no_cycle(self):
        table = TABLE_HEAD + "| `common/base` | `server/heap` |\n| `server/heap` | `server/store` |\n| `server/store` | `common/base` |\n"
        self.includes(table, "", "cycle of folders: common/base -> server/heap -> server/store -> common/base")

    def test_tests_mirror_the_tree(self):
        tree = {"server/heap/heap.cc": "", "tests/server/heap/heap_test.cc": "", "tests/server/support/a.h": ""}
        self.expect(folders.check_tests, tree)
        self.expect(folders.check_tests, {"server/heap/heap.cc": "", "tests/server/disk/disk_test.cc": ""}, "there is no server/disk")
        self.expect(folders.check_tests, {"tests/server/heap_test.cc": ""}, "belongs into the folder of what it tests")

    def test_tests_of_softverbs_use_nothing_of_the_store(self):
        name, begin = "softverbs/tests/nic/ring_test.cc", '#include "softverbs/nic/ring.h"\n'
        self.expect(folders.check_tests, {name: begin, "softverbs/nic/ring.h": ""})
        self.expect(folders.check_tests, {name: begin + '#include "common/base/clock.h"\n', "softverbs/nic/ring.h": ""},
                    f"{name}:2: softverbs stands alone, so its tests may not include common/base/clock.h")

    def test_a_guard_is_the_path(self):
        self.expect(files.check_headers, {"server/heap/a.h": guarded("gannet/server/heap/a.h"), "softverbs/nic/b.h": guarded("softverbs/nic/b.h")})
        self.expect(files.check_headers, {"client/include/gannet/a.h": guarded("gannet/a.h")})
        self.expect(files.check_headers, {"server/heap/a.h": guarded("gannet/server/a.h")}, "the guard is not GANNET_SERVER_HEAP_A_H_")

    def test_a_source_that_is_not_short_has_an_opening_comment(self):
        long = "int x;\n" * 101
        self.expect(files.check_openings, {"server/a.cc": "// What it is for.\n\n" + long, "client/b.cc": "int x;\n" * 100,
                                           "server/c.h": long, "tools/d.cc": long})
        for name in ("server/a.cc", "client/walk/b.cc"):
            self.expect(files.check_openings, {name: long}, f"{name}: more than 100 lines, and no opening comment")

    def test_lists_in_comments_are_whole(self):
        good = "// 1. One that goes on\n//    here.\n// 2. Two.\n//   - Of two.\n//\n// All.\n//   A drawing.\n"
        self.expect(files.check_lists, {"a.h": good})
        for mark in ("1.", "-"):
            torn = f"  // {mark} One that goes\n  // on\n  //    here.\n"
            self.expect(files.check_lists, {"a.h": torn}, "a.h:2: an item of a list in a comment is torn")
            self.expect(files.check_lists, {"a.h": f"// {mark} " + 20 * "long " + "\n"}, "a.h:1: a line of a comment has more than 100")

    def test_a_source_includes_its_header_first(self):
        header = {"server/heap/a.h": guarded("server/heap/a.h")}
        self.expect(files.check_headers, header | {"server/heap/a.cc": '#include "server/heap/a.h"\n'})
        self.expect(files.check_headers, header | {"server/heap/a.cc": '#include <map>\n#include "server/heap/a.h"\n'},
                    "includes map before its own header")

    def lengths(self, contents, *wanted):
        self.assertEqual(self.problems(files.check_lengths, contents), list(wanted))

    def test_files_have_limits(self):
        self.lengths({"server/a.h": "\n" * 300, "server/a.cc": "\n" * 800, "tests/a.cc": "\n" * 500})
        self.lengths({"server/a.h": "\n" * 801}, "server/a.h: 801 lines, a source has at most 800")
        self.lengths({"tests/a.cc": "\n" * 801}, "tests/a.cc: 801 lines, a source has at most 800")
        self.lengths({"softverbs/tests/a.h": "\n" * 500})

    def test_functions_have_a_limit(self):
        body = "  if (a) { b('{'); }  // }\n" * 69
        for head, end, label in (("void Heap::Free(int a)", "", "Heap::Free"),
                                 ("class Heap : public Base {\n Heap(int a) : Base(a), x_{a}", "\n};", "Heap::Heap"),
                                 ("namespace {\ntemplate <typename T = void>\nclass X_API Heap { int x = 1; bool operator<(T) const", "\n};}", "Heap::operator"),
                                 ("TEST_F(HeapTest, Frees)", "", "HeapTest.Frees"),
                                 ("int f(std::function<void()> g = {})", "", "f")):
            one_line = {"a.cc": f"{head} {{{body}}}{end}\n"}
            two_lines = {"a.cc": f"{head} {{\n{body}\n}}{end}\n"}
            self.expect(files.check_function_lengths, one_line)
            self.expect(files.check_function_lengths, two_lines, f": {label} has 72 lines, a function has at most 70")

    def test_functions_in_python_have_the_same_limit(self):
        self.expect(files.check_function_lengths, {"a.py": "def f():\n" + "    pass\n" * 69})
        self.expect(files.check_function_lengths, {"a.py": "\ndef f():\n" + "    pass\n" * 70}, "a.py:2: f has 71 lines")

    def test_nothing_is_unfinished(self):
        mark = "TO" + "DO"
        self.expect(files.check_unfinished, {"a.cc": "// toDo\n", "a.h": 'mkdtemp("a-XXXXXX");\n', "b.md": mark + "S\n"})
        for name in ("a.cc", "a.py", "a.md", "a/CMakeLists.txt", "a.cmake", "a.sh", "dev"):
            self.expect(files.check_unfinished, {name: f"\n# {mark}: more\n"}, f"{name}:2: unfinished work")

    def document(self, text, *wanted):
        tree = {"docs/a.md": text, "README.md": "# How it works\n", "server/heap.h": "class HeapBlock { void Free(); };\n"}
        self.expect(documents.check_documents, tree, *wanted)

    def test_documents_name_what_exists(self):
        self.document("[a](../README.md#how-it-works) [b](#c) `server/heap.h` `HeapBlock` `heap.h:HeapBlock::Free`\n# C\n")
        self.document("[a](../GONE.md)", "docs/a.md: no file ../GONE.md")
        self.document("[a](../README.md#what-it-is)", "no heading #what-it-is in ../README.md")
        self.document("`server/gone.h`", "no file server/gone.h")
        self.document("`HeapGone`", "no HeapGone in the sources")
        self.document("`server/heap.h:Gone`", "no Gone in server/heap.h")

    def test_documents_of_softverbs_name_its_own_files(self):
        tree = {"softverbs/README.md": "`tests/a.sh`\n", "softverbs/tests/a.sh": ""}
        self.expect(documents.check_documents, tree)
        self.expect(documents.check_documents, tree | {"softverbs/README.md": "`server/a.h`\n", "server/a.h": ""}, "no file server/a.h")

    def test_a_page_is_short_and_its_prose_fits_a_window(self):
        long = "a" * 121
        fits = f"{long[1:]}\n| {long} |\n\n    {long}\n\n```\n{long}\n```\n[a](../{long}.md)\n"
        measured = f"<!-- measured by x: begin -->\n{long}\n<!-- measured by x: end -->\n"
        self.expect(documents.check_pages, {"docs/a.md": fits + measured, "docs/b.md": "\n" * 300, "CHANGELOG.md": "\n" * 301 + long})
        self.expect(documents.check_pages, {"docs/a.md": "\n" * 301}, "docs/a.md: 301 lines, a page has at most 300")
        for text in (long, f"- {long}", f"```\n```\n{long}", measured + long):
            self.expect(documents.check_pages, {"docs/a.md": text}, " columns, prose has at most 120")

    def test_what_sources_cite_exists(self):
        page = {"docs/a.md": "# A\n\n## With `--sync`, or not\n"}
        cites = '// See docs/a.md, rule 3, and (docs/a.md, "With --sync,\n  // or not").\n'
        self.expect(documents.check_citations, page | {"server/a.h": cites})
        self.expect(documents.check_citations, page | {"server/a.h": "// docs/gone.md\n"}, "server/a.h: there is no docs/gone.md")
        self.expect(documents.check_citations, page | {"server/a.h": '// docs/a.md, "Gone"\n'}, 'server/a.h: no heading "Gone" in docs/a.md')

    def test_each_row_of_the_index_names_a_function_and_a_page(self):
        def index(row):
            head = "# Where\n\n| question | in short | code | page |\n|---|---|---|---|\n"
            return {"docs/where-to-look.md": head + row, "server/heap/heap.cc": "void Heap::Free() {}  // Gone\n"}

        self.expect(documents.check_index, index("| Who? | I | `server/heap/heap.cc:Heap::Free` | [a](memory.md#heap) |\n"))
        for row in ("| Who? | I | `server/heap/heap.cc` | [a](a.md) |\n", "| Who? | I | `server/heap/heap.cc:Free` | |\n"):
            self.expect(documents.check_index, index(row), '"Who?" has no place `file:Function`, or no page')
        for place in ("server/heap/heap.cc:Gone", "heap/heap.cc:Free", "server/gone.cc:Free"):
            self.expect(documents.check_index, index(f"| Who? | I | `{place}` | [a](a.md) |\n"), '"Who?": no ')
        self.expect(documents.check_index, {"docs/where-to-look.md": "# Where\n"}, "no rows found")
        self.expect(documents.check_index, {"docs/a.md": ""}, "no rows found")

    def test_each_folder_with_sources_has_a_paragraph(self):
        tree = {"server/heap/heap.cc": "", "server/main.cc": "", "tests/model/a.h": "", "python/a/b.py": "", "server/heap/CMakeLists.txt": ""}
        page = "# Folders\n\n**`server/heap`** hands out.\n\n**`server`** and\n**`tests/model`** are.\n\n**`python`** is.\n"
        self.expect(documents.check_folders, tree | {"docs/folders.md": page})
        self.expect(documents.check_folders, tree | {"docs/folders.md": page.replace("**`server/heap`**", "See **`server/heap`**")},
                    "docs/folders.md: no paragraph for server/heap")
        self.expect(documents.check_folders, tree | {"docs/folders.md": page, "server/disk/a.h": ""}, "no paragraph for server/disk")
        self.expect(documents.check_folders, tree | {"docs/folders.md": page + "\n**`server/gone`** was.\n"},
                    "a paragraph for server/gone, which has no sources")

    def test_mutants_apply_and_are_listed(self):
        patch = "Frees twice\n--- a/a.cc\n+++ b/a.cc\n@@ -1 +1 @@\n-Free();\n+Free(), Free();\n"
        tree = {"tests/simulation/mutants/1.patch": patch, "docs/mutants.md": "| Frees twice |\n", "a.cc": "Free();\n"}
        self.expect(documents.check_mutants, tree)
        self.expect(documents.check_mutants, tree | {"a.cc": "Free(1);\n"}, "does not apply")
        self.expect(documents.check_mutants, tree | {"docs/mutants.md": ""}, 'docs/mutants.md has no line for "Frees twice"')
        self.expect(documents.check_mutants, {"a.cc": ""}, "no patches found")

    def test_each_flag_of_kvserver_is_the_groups_or_a_members_own(self):
        flags = {"server/main/flags/server_flags.cc": 'DEFINE_string(sync, "", "");\nDEFINE_uint32(\n    workers, 1, "");\n'}
        head = "# A cluster\n\n## What members do alike\n"
        self.expect(documents.check_flags_of_members, flags | {"docs/cluster.md": head + "`--sync`, `--workers`\n"})
        self.expect(documents.check_flags_of_members, flags | {"docs/cluster.md": head + "`--sync`\n\n## Next\n`--workers`\n"},
                    "does not say whose --workers is")
        self.expect(documents.check_flags_of_members, {"a.cc": ""})

    def test_each_statistic_has_a_row_and_a_metric(self):
        listed = {"common/protocol/stats_reply.h": guarded("common/protocol/stats_reply.h",
                                                           "#define GANNET_STATISTICS(X) \\\n  X(rpcs) \\\n  X(items)\n")}
        rest = {"docs/operations.md": "| `rpcs`, `items` | told |\n", "server/main/http/metrics.cc": "int x = it.stats.items;\n"}
        self.expect(documents.check_statistics, listed | rest)
        self.expect(documents.check_statistics, listed | rest | {"docs/operations.md": "| `rpcs` | told |\n`items`\n"},
                    "no table in docs has a row for `items`")
        self.expect(documents.check_statistics, listed | rest | {"server/main/http/metrics.cc": "int x = it.items;\n"},
                    "server/main/http shows no items")
        self.expect(documents.check_statistics, {"a.cc": ""})

    def test_the_document_has_each_request(self):
        path = "common/protocol/opcode.h"
        listed = {path: guarded(path, "#define GANNET_REQUESTS(X) \\\n  X(Get, 1, get, kGet) \\\n  X(SlowLog, 24, slow_log, kList)\n")}
        row = "| 0 | 1 | opcode | 1 get, 24 slow log |\n"
        self.expect(documents.check_requests, listed | {"docs/protocol-messages.md": row})
        for wrong in (row.replace(", 24 slow log", ""), row.replace("24", "25"), row.replace("get", "put"), ""):
            self.expect(documents.check_requests, listed | {"docs/protocol-messages.md": wrong}, "the row of opcodes")
        self.expect(documents.check_requests, {"a.cc": ""})

    def test_braces_have_partners(self):
        self.expect(functions.check_braces, {"a.cc": "#define X {\nvoid f() { g(\"{\", '{'); }  // {\n"})
        for text in ("void f() {\n", "void f() {}}\n", "#if A\nvoid f() {\n#else\nvoid f(int) {\n#endif\n}\n"):
            self.expect(functions.check_braces, {"a.cc": text}, "a.cc: a brace has no partner")

    def test_what_is_declared_is_defined(self):
        header = guarded("a.h", "int Plain(int);\nclass A {\n  A();\n  void Free(int);\n  void Free() const;\n  void None() = delete;\n"
                         "  bool operator<(const A&) const;\n  virtual void Pure() = 0;\n  std::function<void(int)> f_ GUARDED_BY(m_);\n"
                         "  static int x_ = Plain(3);\n  const Fd fd_{Open(1)};\n};\n")
        whole = 'int Plain(int) {}\nvoid A::Free(int) {}\nvoid A::Free() const {}\n'
        self.expect(functions.check_definitions, {"a.h": header, "a.cc": whole})
        self.expect(functions.check_definitions, {"a.h": header, "a.cc": whole.replace("int Plain(int) {}", "int Other() {}")},
                    "a.h:3: Plain is declared and not defined")
        self.expect(functions.check_definitions, {"a.h": header, "a.cc": whole.replace("A::Free()", "B::Free()")},
                    "a.h:6: A::Free is declared and not defined")

    def test_somebody_calls_each_function(self):
        header = guarded("a.h", "class A : public B {\n  A();\n  void Free(int);\n  int size() const { return 1; }\n  void Put() override;\n};\n")
        callers = {"a.cc": "void A::Free(int) {}\n", "b.h": '#include "a.h"\n', "b.cc": '#include "b.h"\nvoid F(A a) { a.Free(a.size()); }\n'}
        self.expect(functions.check_callers, {"a.h": header} | callers)
        self.expect(functions.check_callers, {"a.h": header} | callers | {"b.cc": '#include "b.h"\n// a.Free()\nint x = A().size();\n'},
                    "a.h:5: nobody calls A::Free")
        # Who does not see the header means another function of that name.
        self.expect(functions.check_callers, {"a.h": header} | callers | {"b.h": ""}, "nobody calls A::Free", "nobody calls A::size")

    def test_a_type_has_a_name_of_its_own(self):
        header = {"server/heap/a.h": "namespace x {\nclass Heap;\nclass Heap final : public A<B> {\n  struct Kind {\n};\n};\n}\n"}
        others = {"server/store/b.h": "class Heap;\nclass Store {\n  Heap heap;\n  struct Kind {\n};\n};\n", "server/store/c.cc": "class Heap::Part {\n};\n",
                  "tests/a.cc": "class Heap {\n};\n"}
        self.expect(names.check_types, header | others)
        for text in ("enum class Heap : int {\n};\n", 'template <class T>\nclass X_TEXT("a") Heap\n    : public B {\n};\n', "using Heap = int;\n"):
            self.expect(names.check_types, header | {"server/store/b.h": text}, "server/heap/a.h: Heap is also a type of server/store/b.h")
        self.expect(names.check_types, header | {"server/store/c.cc": "struct Heap {\n};\n"}, "Heap is also a type of server/store/c.cc")
        # What only sources have is seen nowhere else.
        self.expect(names.check_types, {"server/store/c.cc": "struct Part {\n};\n", "server/heap/d.cc": "struct Part {\n};\n"})
        self.expect(names.check_types, {"common/base/mutex.h": "class Mutex {\n};\n", "softverbs/base/mutex.h": "class Mutex {\n};\n"})

    def test_a_header_has_a_name_of_its_own(self):
        self.expect(names.check_header_names, {"server/heap/a.h": "", "server/store/a.cc": "", "tests/server/a.h": ""})
        self.expect(names.check_header_names, {"client/include/gannet/a.h": "", "client/include/gannet/c/a.h": ""})
        self.expect(names.check_header_names, {"server/heap/a.h": "", "server/store/a.h": ""}, "server/heap/a.h: server/store/a.h has the same name")

    def limits(self, rule, contents, known, *wanted):
        found = self.problems(rule, contents, known)
        self.assertEqual(len(found), len(wanted), found)
        for problem, part in zip(found, wanted):
            self.assertIn(part, problem)

    def test_a_class_has_few_methods(self):
        methods = "".join(f"  void Do{i}();\n" for i in range(30))
        head = "class A : public B {\n  A();\n  ~A();\n  bool operator<(const A&) const;\n  void None() = delete;\n  int x_ = Get();\n"
        self.limits(classes.check_methods, {"server/a.h": f"{head}{methods}}};\n"}, {})
        wide = {"server/a.h": f"{head}{methods}  int size() const {{ return 1; }}\n}};\n"}
        self.limits(classes.check_methods, wide, {}, "server/a.h: A has 31 methods, at most 30 are allowed")
        returned = {"server/a.h": f"{head}{methods}  std::vector<int> sizes() const;\n}};\n"}
        self.limits(classes.check_methods, returned, {}, "server/a.h: A has 31 methods, at most 30 are allowed")
        self.limits(classes.check_methods, {"tests/a.h": wide["server/a.h"]}, {})
        self.limits(classes.check_methods, wide, {"A": 31})
        self.limits(classes.check_methods, wide, {"A": 32}, "A has 31 methods now: put that in the place of 32")

    def test_a_class_lies_in_one_source(self):
        tree = {"server/a.h": "class A {\n  void F();\n  void G() {}\n};\n", "server/a.cc": "void A::F() {}\n"}
        self.limits(classes.check_sources, tree, {})
        other = tree | {"server/b.cc": "template <class T>\nvoid A::H() {}\n"}
        self.limits(classes.check_sources, other, {}, "server/a.h: A has 2 sources, at most 1 are allowed")
        self.limits(classes.check_sources, other, {"A": 2})
        self.limits(classes.check_sources, tree, {"A": 2}, "A has 1 sources now: put that in the place of 2, or take it out")
        self.limits(classes.check_sources, other | {"server/CMakeLists.txt": "gannet_hot_sources(b.cc)\n"}, {})
        # A class of that name which only a source has.
        self.limits(classes.check_sources, tree | {"server/b.cc": "class A {\n  void F() {}\n};\n"}, {})

    def test_a_constructor_takes_few_things(self):
        eight = "class A {\n  explicit A(int a, B<C, D> b, int c, int d, F (*e)(int, int), int f, int g = G{1, 2}.h, int i%s);\n};\n"
        self.limits(classes.check_constructors, {"server/a.h": eight % ""}, {})
        self.limits(classes.check_constructors, {"server/a.cc": eight % ", int j"}, {},
                    "server/a.cc: A has 9 parameters of a constructor, at most 8 are allowed")
        self.limits(classes.check_constructors, {"server/a.h": "class A {\n  A();\n};\n"}, {"A": 9}, "A has 0 parameters of a constructor now")

    def test_a_folder_is_not_tiny(self):
        tree = {f"server/heap/{name}": "" for name in ("a.cc", "a.h", "b.h")} | {"tests/server/a.cc": ""}
        self.limits(classes.check_folders, tree, {})
        self.limits(classes.check_folders, tree | {"server/store/a.h": ""}, {}, "server/store: has 1 sources, a folder has at least 3")
        self.limits(classes.check_folders, tree | {"server/store/a.h": ""}, {"server/store"})
        self.limits(classes.check_folders, tree, {"server/heap"}, "server/heap is no small folder")

    def test_the_machine_is_asked_for_the_time_in_few_places(self):
        ask = "int64_t Now() { return clock_gettime(CLOCK_REALTIME); }\n"
        for name in ("common/base/clock.h", "common/base/clocks.h", "tools/a.cc"):
            self.expect(clocks.check_clocks, {name: ask})
        for text in (ask, "auto x = absl::Now();\n", "auto x = std::chrono::steady_clock::now();\n"):
            self.expect(clocks.check_clocks, {"common/rdma/a.cc": text}, "common/rdma/a.cc:1: ")
        # A clock that was handed down may be asked by anybody, the machine's by few.
        self.expect(clocks.check_clocks, {"server/group/a.cc": "x = options_.wall.Now(); y = clock_->MonotonicNs(); z = clock.BootNs();\n"})
        self.expect(clocks.check_clocks, {"server/group/a.cc": "\nrequest = Make(WallNs());\n"}, "server/group/a.cc:2: WallNs: asks the machine")
        self.expect(clocks.check_clocks, {"client/routing/a.cc": "ClientClock::Real().MonotonicNs();\n"}, "client/routing/a.cc:1: ClientClock::Real()")
        self.expect(clocks.check_clocks, {"server/main.cc": "Wait(MonotonicNs());\n"})
        # To have it as a default is a problem of its own.
        self.expect(clocks.check_clocks, {"server/rpc/now.h": "struct Source {\n  int64_t (*boot)() = BootNs;\n};\n"},
                    "server/rpc/now.h:2: BootNs: asks the machine", "server/rpc/now.h:2: = BootNs;: a default that asks the machine")
        # A client's is named where a user makes one. No header of a client has it as a default.
        self.expect(clocks.check_clocks, {"client/api/client.cc": "Connect({.options = options, .clock = ClientClock::Real()});\n"})
        for name in ("engine/engine", "session/session_options", "walk/cluster_walk", "walk/region_walk"):
            self.expect(clocks.check_clocks, {f"client/{name}.h": "struct Settings {\n  const ClientClock& clock = ClientClock::Real();\n};\n"},
                        f"client/{name}.h:2: ClientClock::Real()")


class WholeTest(unittest.TestCase):  # runs after RulesTest: unittest sorts by name
    def test_each_rule_was_tried(self):
        self.assertEqual(set(rules_test.RULES) - RulesTest.tested, set())


if __name__ == "__main__":
    unittest.main()
