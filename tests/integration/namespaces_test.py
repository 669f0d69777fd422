#!/usr/bin/python3
"""softverbs between hosts: two_hosts.py namespaces_test.py BIN_DIR

Runs unchanged programs across the two network namespaces of two_hosts.py: ping-pong, perftest, rping, kvserver with kvcli
and kvload. Then it cuts the link and heals it, and kills a side.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../softverbs/tests/support"))
import two_hosts  # noqa: E402

BIN = sys.argv[1]
LIMIT_S = 60
ADDRESSES = {"a": os.environ["TWO_HOSTS_A"], "b": os.environ["TWO_HOSTS_B"]}
ENTER = {"a": [], "b": two_hosts.enter_b()}


class Program:
    """A program in one of the namespaces, on softverbs."""

    def __init__(self, side, *words, preload=True, **environment):
        self.output = tempfile.TemporaryFile(mode="w+")
        environment = os.environ | {"SOFTVERBS_NET": ADDRESSES[side], "SOFTVERBS_VERBOSE": "1"} | environment
        run = [os.path.join(BIN, "softverbs-run")] if preload else []
        self.child = subprocess.Popen([*ENTER[side], *run, *words], env=environment,
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
    while text not in subprocess.run([*ENTER[side], "cat", path], check=True, capture_output=True,
                                     text=True).stdout:
        if time.monotonic() > deadline:
            raise RuntimeError(f"no {text!r} in {path}")
        time.sleep(0.01)


def await_socket(side, port, state):
    """Waits until the namespace has a TCP socket at this port in a state of /proc/net/tcp."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        lines = subprocess.run([*ENTER[side], "cat", "/proc/net/tcp", "/proc/net/tcp6"], check=True,
                               capture_output=True, text=True).stdout.splitlines()
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

    def test_multicast_is_refused_and_says_why(self):
        member = Program("a", "mckey", "-m", "239.80.86.1", "-b", ADDRESSES["a"])
        self.assertNotEqual(member.wait(), 0)
        self.assertIn("multicast does not leave the host", member.text())

    def start_endless(self):
        """Returns the server and the client of a run that does not end by itself. The client always has requests under
        way: who only waits for the other's message does not notice its end, as on any RC queue pair."""
        words = ["ib_write_bw", "-F", "-s", "4096", "-n", "5000000"]
        server = Program("a", *words)
        await_listener("a", 18515)
        client = Program("b", *words, ADDRESSES["a"])
        await_link("b")
        return server, client

    def expect_retries_exceeded(self, client):
        self.assertNotEqual(client.wait(), 0)
        self.assertIn("Failed status 12", client.text())  # IBV_WC_RETRY_EXC_ERR

    def test_a_killed_side_is_noticed(self):
        server, client = self.start_endless()
        server.stop(signal.SIGKILL)
        self.expect_retries_exceeded(client)

    def test_a_cut_network_is_noticed(self):
        server, client = self.start_endless()
        try:
            two_hosts.set_link("down")
            self.expect_retries_exceeded(client)
        finally:
            two_hosts.set_link("up")
            server.stop(signal.SIGKILL)
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
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
