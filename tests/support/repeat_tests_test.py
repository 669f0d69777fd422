#!/usr/bin/env python3
"""Runs repeat_tests.py with a ctest of its own, which writes what a ctest writes.

    repeat_tests_test.py
"""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import repeat_tests  # noqa: E402

# Fails in its first run. In the second one it waits if it is told to.
CTEST = """#!/usr/bin/env python3
import json, os, sys
folder = os.path.dirname(os.path.abspath(__file__))
if "--show-only=json-v1" in sys.argv:
    print(json.dumps({"tests": [{"name": "prepares_it", "command": ["prepare"]},
                                {"name": "some_test", "command": ["./some_test", "--gtest_filter=Other.*", "--fast"],
                                 "properties": [{"name": "ENVIRONMENT", "value": ["A=b c"]}]}]}))
    sys.exit()
first = not os.path.exists(folder + "/ran")
open(folder + "/ran", "a").close()
if os.path.exists(folder + "/wait"):
    print("waits", flush=True)
    sys.stdin.read()
said = "[ RUN      ] Some.Case\\nseed 77 (TEST_SEED repeats it)\\n[  FAILED  ] Some.Case (1 ms)\\n" if first else ""
with open(sys.argv[sys.argv.index("--output-junit") + 1], "w") as file:
    file.write('<testsuite><testcase name="good_test" status="run"/><testcase name="skipped_test" status="notrun"/>'
               f'<testcase name="some_test" status="{"fail" if first else "run"}"><system-out>{said}</system-out></testcase></testsuite>')
sys.exit(8 if first else 0)
"""


class FailedCasesTest(unittest.TestCase):
    def test_each_has_the_seed_that_was_printed_while_it_ran(self):
        output = ("[ RUN      ] A.One\nseed 1 (TEST_SEED repeats it)\n[       OK ] A.One (1 ms)\n"
                  "[ RUN      ] A.Two\nseed 2 (TEST_SEED repeats it)\n[  FAILED  ] A.Two (1 ms)\n"
                  "[ RUN      ] P/A.Three/0\n[  FAILED  ] P/A.Three/0, where GetParam() = 3 (1 ms)\n"
                  "[  FAILED  ] 2 tests, listed below:\n[  FAILED  ] A.Two\n[  FAILED  ] P/A.Three/0, where GetParam() = 3\n")
        self.assertEqual(repeat_tests.failed_cases(output), {"A.Two": "2", "P/A.Three/0": None})

    def test_one_that_does_not_end_failed(self):
        output = "[ RUN      ] A.One\n[       OK ] A.One (1 ms)\n[ RUN      ] A.Two\nTEST_SEED=5\nSegmentation fault"
        self.assertEqual(repeat_tests.failed_cases(output), {"A.Two": "5"})

    def test_those_of_python_are_named(self):
        output = "TEST_SEED=9\n======\nFAIL: test_it (__main__.SomeTest)\n------\nFAILED (failures=1)\n"
        self.assertEqual(repeat_tests.failed_cases(output), {"SomeTest.test_it": "9"})

    def test_a_test_without_cases_failed_as_a_whole(self):
        self.assertEqual(repeat_tests.failed_cases("no such file"), {"": None})


class RepeatTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.ctest = os.path.join(self.folder, "ctest")
        with open(self.ctest, "w", encoding="utf-8") as file:
            file.write(CTEST)
        os.chmod(self.ctest, 0o755)

    def command(self, *flags):
        return [os.path.join(HERE, "repeat_tests.py"), *flags, self.ctest, "--test-dir", "build"]

    def test_says_what_failed_and_what_repeats_it(self):
        done = subprocess.run(self.command("--repeat=3"), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("3 runs: 6 tests, 1 failed", done.stdout)
        self.assertIn("some_test: failed in 1 of 3 runs", done.stdout)
        self.assertIn("env TEST_SEED=77 'A=b c' ./some_test --fast --gtest_filter=Some.Case", done.stdout)

    def test_succeeds_if_nothing_fails(self):
        with open(f"{self.folder}/ran", "w", encoding="utf-8"):
            pass
        done = subprocess.run(self.command("--repeat=2", "--load=2"), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("2 runs beside a load of 2: 4 tests, 0 failed", done.stdout)

    def test_the_load_ends_with_it_even_if_it_is_killed(self):
        with open(f"{self.folder}/wait", "w", encoding="utf-8"):
            pass
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            with self.subTest(how):
                read, write = os.pipe()
                repeats = subprocess.Popen(self.command("--load=2"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           stderr=write, text=True, start_new_session=True)
                os.close(write)
                self.assertEqual(repeats.stdout.readline(), "waits\n")
                os.killpg(repeats.pid, how) if how == signal.SIGINT else repeats.send_signal(how)
                repeats.stdin.close()  # its ctest ends
                repeats.stdout.read()
                self.assertNotEqual(repeats.wait(), 0)
                repeats.stdout.close()
                # Whoever of them still runs has the other end.
                with os.fdopen(read, encoding="utf-8") as errors:
                    errors.read()


if __name__ == "__main__":
    unittest.main()
