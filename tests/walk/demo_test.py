#!/usr/bin/env python3
"""Runs `./dev demo` with the real programs, in a tree of its own whose cmake is a stand-in.

    demo_test.py --source DIR --build DIR

  1. The first put and get are shown before the rest of the demo is built. That is certain: the stand-in does not
     end before they were shown.
  2. A rest that cannot be built is shown, and fails the demo.
  3. Ctrl-C ends the demo, its server and what builds, and leaves no memory file.
  4. --built builds nothing.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

WAIT_S = 120  # until something that should happen soon counts as hung
FIRST = ("build", "kvserver kvcli softverbs")
REST = ("build", "kvload takeover_client")
# Logs what is to be built. For the rest of the demo it first waits for a line from the test: "link", "fail" or
# "stay", which starts a child, as ninja does.
CMAKE = """#!/usr/bin/env bash
what=$*
what=${what##* -- }
echo "build $what" >>"$TREE/built"
[[ $what == *kvload* ]] || exit 0
echo $$ >>"$TREE/pids"
read -r order <"$TREE/order"
case $order in
  link) ln -s "$BUILD/bin/kvload" "$TREE/build/release/bin/" ;;
  fail) echo "kvload.cc:7: error: no such thing"; exit 1 ;;
  stay) sleep 1000 & echo $! >>"$TREE/pids"; touch "$TREE/stays"; wait ;;
esac
"""
KVSERVER = """#!/usr/bin/env bash
echo $$ >>"$TREE/pids"
exec "$BUILD/bin/kvserver" "$@"
"""
TAKEOVER = """#!/usr/bin/env bash
echo "takeover $*"
"""


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def wait_for(what, condition):
    end = time.monotonic() + WAIT_S
    while not condition():
        check(time.monotonic() < end, f"{what}: not in {WAIT_S} s")
        time.sleep(0.02)


def write_program(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


class Tree:
    def __init__(self, path, source, build):
        self.path = path
        programs = f"{path}/build/release/bin"
        write_program(f"{path}/stand-in/cmake", CMAKE)
        write_program(f"{programs}/kvserver", KVSERVER)
        write_program(f"{path}/tools/bench/takeover.py", TAKEOVER)
        os.symlink(f"{build}/bin/kvcli", f"{programs}/kvcli")
        open(f"{path}/build/release/build.ninja", "w", encoding="utf-8").close()  # configured
        shutil.copy(f"{source}/dev", path)
        os.mkfifo(f"{path}/order")
        self.variables = os.environ | {"TREE": path, "BUILD": build, "PATH": f"{path}/stand-in:{os.environ['PATH']}"}

    def lines(self, name):
        if not os.path.exists(f"{self.path}/{name}"):
            return []
        with open(f"{self.path}/{name}", encoding="utf-8") as file:
            return file.read().splitlines()

    def order(self, what):
        with open(f"{self.path}/order", "w", encoding="utf-8") as file:
            print(what, file=file)

    @contextlib.contextmanager
    def demo(self, *flags):
        with open(f"{self.path}/said", "w", encoding="utf-8") as said:
            # Its own session, as if it had a terminal of its own.
            process = subprocess.Popen([f"{self.path}/dev", "demo", *flags, "1000"], env=self.variables, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=said, text=True, start_new_session=True)
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(WAIT_S)
        check(not os.path.exists(f"/dev/shm/gannet-demo-{process.pid}"), "the memory file is still there")
        wait_for("the end of what the demo started", lambda: not [pid for pid in self.lines("pids") if os.path.exists(f"/proc/{pid}")])

    def said(self):
        return "\n".join(self.lines("said"))


def read_until(process, wanted):
    """Reads what it prints until a line begins with `wanted`. Returns the lines."""
    lines = []
    while not lines or not lines[-1].startswith(wanted):
        line = process.stdout.readline()
        check(line, f"the demo ended without {wanted}: {lines}")
        lines.append(line.rstrip("\n"))
    return lines


def first_steps(tree, process):
    """Returns when put and get, and what outlives kill -9, were shown, while nobody has built the rest."""
    lines = read_until(process, "$ kvcli get survivor") + read_until(process, "here before and after")
    for line in ("$ kvcli get greeting", "hello, one-sided world", "(exit code 1)"):
        check(line in lines, f"the demo shows no {line!r}: {lines}")
    check([line.startswith("$ kill -9 ") for line in lines].count(True) == 1, f"no kill -9 in {lines}")
    check(not os.path.exists(f"{tree.path}/build/release/bin/kvload"), "the rest was built by nobody")


def check_whole(tree):
    with tree.demo() as process:
        first_steps(tree, process)
        tree.order("link")
        rest = process.communicate(timeout=WAIT_S)[0]
        check(process.returncode == 0, f"exit code {process.returncode}: {tree.said()}")
    check("workload" in rest and "takeover --build build/release" in rest and "Next:" in rest, rest)
    check(tree.lines("built") == [" ".join(FIRST), " ".join(REST)], f"built: {tree.lines('built')}")


def check_failing_rest(tree):
    with tree.demo() as process:
        first_steps(tree, process)
        tree.order("fail")
        rest = process.communicate(timeout=WAIT_S)[0]
        check(process.returncode == 1, f"exit code {process.returncode}")
    check("error: no such thing" in tree.said() and "could not be built" in tree.said(), tree.said())
    check("workload" not in rest and "Next:" not in rest, f"goes on without kvload: {rest}")


def check_interrupt(tree):
    with tree.demo() as process:
        first_steps(tree, process)
        tree.order("stay")
        wait_for("the build", lambda: os.path.exists(f"{tree.path}/stays"))
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=WAIT_S)
        check(process.returncode == 130, f"exit code {process.returncode}")
    check(len(tree.lines("pids")) == 4, f"two servers, a build and its child: {tree.lines('pids')}")


def check_built(tree):
    with tree.demo("--built") as process:
        rest = process.communicate(timeout=WAIT_S)[0]
        check(process.returncode == 0, f"exit code {process.returncode}: {tree.said()}")
    check("hello, one-sided world" in rest and "workload" in rest and "takeover" not in rest, rest)
    check(tree.lines("built") == [], f"built: {tree.lines('built')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    options = parser.parse_args()
    for case in (check_whole, check_failing_rest, check_interrupt, check_built):
        with tempfile.TemporaryDirectory(prefix="gannet-demo-") as path:
            tree = Tree(path, options.source, options.build)
            if case is check_built:
                os.symlink(f"{options.build}/bin/kvload", f"{path}/build/release/bin/kvload")
            case(tree)
            print(f"{case.__name__[len('check_'):]}: ok", flush=True)


if __name__ == "__main__":
    main()
