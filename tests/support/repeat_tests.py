#!/usr/bin/env python3
"""Runs ctest N times, beside a load, and says which tests failed, how often, and what repeats each failure.

    repeat_tests.py [--repeat=N] [--load=N] ctest ARGUMENT...

The load is N processes that compute all the time. They end with this one, however that ends. The exit code is 1 if a
test failed in any run, or if ctest ran none.
"""

import argparse
import collections
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    sum(range(100_000))"
SEED = re.compile(r"seed (\d+) \(TEST_SEED|TEST_SEED=(\d+)")
CASE = re.compile(r"\[ +(RUN|OK|SKIPPED|FAILED) +\] ([^\s,()]+\.[^\s,()]+)")  # of GoogleTest
PYTHON_CASE = re.compile(r"^(?:FAIL|ERROR): (\w+) \(([\w.]+)\)", re.MULTILINE)


def failed_cases(output):
    """Returns the cases of a test that did not end well, each with its seed or None. One whose end is missing crashed,
    or ran into the time limit."""
    running, seed, seeds, failed = None, None, {}, []
    for line in output.splitlines():
        if found := SEED.search(line):
            seed = found.group(1) or found.group(2)
            if running:
                seeds[running] = seed
        if not (found := CASE.search(line)):
            continue
        what, case = found.groups()
        running = case if what == "RUN" else None
        if what == "FAILED" and case not in failed:
            failed.append(case)
    if running:
        failed.append(running)
    cases = {case: seeds.get(case) for case in failed}
    if not cases:
        cases = {f"{where}.{name}".rsplit("__main__.", maxsplit=1)[-1]: seed for name, where in PYTHON_CASE.findall(output)}
    return cases or {"": seed}


def failures(path):
    """Returns how many tests ran, and those that failed, as {test: {case: seed}}."""
    tests = list(xml.etree.ElementTree.parse(path).getroot().iter("testcase"))
    failed = {test.get("name"): failed_cases(test.findtext("system-out") or "") for test in tests if test.get("status") == "fail"}
    return sum(test.get("status") in ("run", "fail") for test in tests), failed


class Ctest:
    def __init__(self, command):
        self.command = command

    def run(self):
        """Returns its exit code, how many tests ran, and those that failed."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "results.xml")
            code = subprocess.run([*self.command, "--test-output-size-failed", "10000000", "--output-junit", path], check=False).returncode
            return (code, *(failures(path) if os.path.exists(path) else (0, {})))

    def command_of(self, test, case, seed):
        """Returns a line for a shell that runs the case of a test again."""
        at = self.command.index("--test-dir")
        listed = subprocess.run([self.command[0], *self.command[at:at + 2], "--show-only=json-v1", "-R", f"^{re.escape(test)}$"],
                                capture_output=True, text=True, check=False)
        if listed.returncode != 0:
            return f"ctest -R '^{test}$'"
        # Those that prepare it are listed, too.
        (found,) = (it for it in json.loads(listed.stdout)["tests"] if it["name"] == test)
        properties = {it["name"]: it["value"] for it in found.get("properties", [])}
        words, remark = found["command"], ""
        if case.rpartition(".")[2].startswith("test_"):
            remark = f"  # {case}"  # of Python
        elif case:
            words = [*(it for it in words if not it.startswith("--gtest_filter=")), f"--gtest_filter={case}"]
        settings = [f"TEST_SEED={seed}"] if seed else []
        return shlex.join(["env", *settings, *properties.get("ENVIRONMENT", []), *words]) + remark


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("ctest", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    ctest = Ctest(options.ctest)
    load = [subprocess.Popen([sys.executable, "-c", BUSY, str(os.getpid())]) for _ in range(options.load)]
    runs, ran, bad = 0, 0, collections.defaultdict(list)
    worst = 0
    try:
        while runs < options.repeat:
            code, tests, failed = ctest.run()
            worst = max(worst, code)
            if code != 0 and tests == 0:
                break
            runs, ran = runs + 1, ran + tests
            for test, cases in failed.items():
                bad[test].append(cases)
            if options.repeat > 1:
                print(f"run {runs} of {options.repeat}: {tests} tests, {len(failed)} failed", flush=True)
    except KeyboardInterrupt:
        worst = 130
    finally:
        for busy in load:
            busy.kill()
            busy.wait()
    if options.repeat > 1 or bad:
        beside = f" beside a load of {options.load}" if options.load else ""
        print(f"\n{runs} runs{beside}: {ran} tests, {sum(map(len, bad.values()))} failed")
    for test, times in sorted(bad.items()):
        print(f"{test}: failed in {len(times)} of {runs} runs; to repeat it:")
        for case, seed in dict.fromkeys(item for cases in times for item in cases.items()):
            print(f"  {ctest.command_of(test, case, seed)}")
    sys.exit(1 if 0 < worst < 130 else worst)


if __name__ == "__main__":
    main()
