#!/usr/bin/python3
"""softverbs between hosts: namespaces_test.py BIN_DIR

Makes two network namespaces that are joined by a veth pair, and runs unchanged programs across them: ping-pong,
perftest, rping, kvserver with kvcli and kvload. Then it cuts the link and heals it, and kills a side. Needs root, or a
kernel that gives ordinary users namespaces. Otherwise it is skipped, and says why.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = sys.argv[1]
LIMIT_S = 60
SKIPPED = 77
ADDRESSES = {"a": "10.77.0.1", "b": "10.77.0.2"}
NAMES = {side: f"softverbs-{os.getpid()}-{side}" for side in ADDRESSES}


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


def why_not():
    """Returns why there can be no namespaces here, or None."""
    try:
        made = ip("netns", "add", NAMES["a"], check=False)
    except FileNotFoundError:
        return "no ip(8): install iproute2"
    if made.returncode != 0:
        return "no network namespaces here: " + made.stderr.strip()
    pair = ip("link", "add", "probe", "netns", NAMES["a"], "type", "veth", "peer", "name", "other", check=False)
    ip("netns", "del", NAMES["a"])
    return None if pair.returncode == 0 else "no veth here: " + pair.stderr.strip()


def setUpModule():
    for side in ADDRESSES:
        ip("netns", "add", NAMES[side])
    ip("link", "add", "veth-a", "netns", NAMES["a"], "type", "veth", "peer", "name", "veth-b", "netns", NAMES["b"])
    for side, address in ADDRESSES.items():
        ip("-n", NAMES[side], "addr", "add", f"{address}/24", "dev", f"veth-{side}")
        for device in ("lo", f"veth-{side}"):
            ip("-n", NAMES[side], "link", "set", device, "up")


def tearDownModule():
    for name in NAMES.values():
        ip("netns", "del", name, check=False)


def set_link(state):
    ip("-n", NAMES["b"], "link", "set", "veth-b", state)


class Program:
    """A program in one of the namespaces, on softverbs."""

    def __init__(self, side, *words, preload=True, **environment):
        self.output = tempfile.TemporaryFile(mode="w+")
        environment = os.environ | {"SOFTVERBS_NET": ADDRESSES[side], "SOFTVERBS_VERBOSE": "1"} | environment
        run = [os.path.join(BIN, "softverbs-run")] if preload else []
        self.child = subprocess.Popen(["ip", "netns", "exec", NAMES[side], *run, *words], env=environment,
                                      stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT)

    def text(self):
        self.output.seek(0)
        return self.output.read()

    def wait(self):
        try:
            return self.child.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.stop(signal.SIGKILL)
            return "still running: " + self.text()

    def wait_for(self, text):
        deadline = time.monotonic() + LIMIT_S
        while text not in self.text():
            if self.child.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no {text!r} in: {self.text()}")
            time.sleep(0.01)
        return self

    def stop(self, how=signal.SIGTERM):
        self.child.send_signal(how)
        return self.child.wait(LIMIT_S)


def await_line(side, path, text):
    """Waits until a file of /proc/net has this text in the namespace."""
    deadline = time.monotonic() + LIMIT_S
    while text not in subprocess.run(["ip", "netns", "exec", NAMES[side], "cat", path], check=True,
                                     capture_output=True, text=True).stdout:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no {text!r} in {path}")
        time.sleep(0.01)


def await_socket(side, port, state):
    """Waits until the namespace has a TCP socket at this port in a state of /proc/net/tcp."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        lines = subprocess.run(["ip", "netns", "exec", NAMES[side], "cat", "/proc/net/tcp", "/proc/net/tcp6"],
                               check=True, capture_output=True, text=True).stdout.splitlines()
        # sl local_address rem_address st
        if any(words[3] == state and f":{port:04X}" in words[1] + words[2] for words in map(str.split, lines)):
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"no socket at {port}")
        time.sleep(0.01)


def await_listener(side, port):
    await_socket(side, port, "0A")


def await_link(side):
    """Waits until a process of the namespace is connected with one of the other."""
    await_socket(side, 4791, "01")


class Namespaces(unittest.TestCase):
    def run_pair(self, *words, port=18515):
        """Runs a tool as server, and again as client with the server's address behind it."""
        server = Program("a", *words)
        await_listener("a", port)
        client = Program("b", *words, ADDRESSES["a"])
        results = client.wait(), server.wait()
        self.assertEqual(results, (0, 0), client.text() + server.text())

    def test_ping_pong(self):
        for flags in ([], ["-e"]):
            self.run_pair("ibv_rc_pingpong", "-g", "0", "-c", "-n", "200", *flags)
        self.run_pair("ibv_ud_pingpong", "-g", "0", "-c", "-n", "200", "-s", "1024")

    def test_perftest(self):
        self.run_pair("ib_read_lat", "-F", "-n", "100")
        self.run_pair("ib_write_bw", "-F", "-n", "200")
        self.run_pair("ib_send_lat", "-F", "-n", "100")
        self.run_pair("ib_atomic_lat", "-F", "-n", "100")

    def test_rping(self):
        # A server at the wildcard has no device before its first connection, and is reached all the same.
        for where, name in ((["-a", ADDRESSES["a"]], ADDRESSES["a"]), ([], "")):
            server = Program("a", "rping", "-s", *where, "-v", "-C", "3")
            await_line("a", "/proc/net/unix", f"@softverbs/cm/0106/{name}")
            client = Program("b", "rping", "-c", "-a", ADDRESSES["a"], "-v", "-C", "3")
            self.assertEqual(client.wait(), 0, client.text() + server.text())
            self.assertIn("rdma-ping-2", client.text())
            server.stop(signal.SIGKILL)

    def test_a_killed_side_is_noticed(self):
        server = Program("a", "ibv_rc_pingpong", "-g", "0", "-n", "1000000")
        await_listener("a", 18515)
        client = Program("b", "ibv_rc_pingpong", "-g", "0", "-n", "1000000", ADDRESSES["a"])
        await_link("b")
        server.child.kill()
        self.assertNotEqual(client.wait(), 0)
        self.assertIn("transport retry counter exceeded", client.text())

    def test_a_cut_network_is_noticed(self):
        server = Program("a", "ibv_rc_pingpong", "-g", "0", "-n", "1000000")
        await_listener("a", 18515)
        client = Program("b", "ibv_rc_pingpong", "-g", "0", "-n", "1000000", ADDRESSES["a"])
        await_link("b")
        try:
            set_link("down")
            self.assertNotEqual((client.wait(), server.wait()), (0, 0))
        finally:
            set_link("up")
        self.assertIn("transport retry counter exceeded", client.text() + server.text())
        self.run_pair("ibv_rc_pingpong", "-g", "0", "-c", "-n", "50")

    def test_kvserver(self):
        endpoint = ADDRESSES["a"] + ":7471"
        server = Program("a", os.path.join(BIN, "kvserver"), f"--listen={endpoint}", "--memory=64M", "--device=soft",
                         preload=False).wait_for("READY")

        def client(program, *words, **environment):
            child = Program("b", os.path.join(BIN, program), f"--server={endpoint}", "--device=soft", *words,
                            preload=False, **environment)
            return child.wait(), child.text()

        self.assertEqual(client("kvcli", "put", "key", "a value")[0], 0)
        code, text = client("kvcli", "get", "key")
        self.assertEqual(code, 0, text)
        self.assertIn("a value", text)
        code, text = client("kvload", "--records=2000", "--operations=5000", "--verify")
        self.assertEqual(code, 0, text)
        # Without the address the error says what is missing.
        code, text = client("kvcli", "get", "key", SOFTVERBS_NET="")
        self.assertNotEqual(code, 0)
        self.assertIn("SOFTVERBS_NET", text)
        self.assertEqual(server.stop(), 0, server.text())


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print("skipped:", reason)
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
