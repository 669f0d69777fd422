#!/usr/bin/python3
"""A group whose members are cut off from each other: two_hosts.py group_partition_test.py BIN_DIR

n1 runs in namespace A, n2, n3 and etcd in B, and a client on each side. The network between A and B is cut while A has the
primary, one way or both, and while A has a backup. No client may believe what is out of date, no write may be lost, and n1
has to come back by itself.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../softverbs/tests/support"))
import two_hosts  # noqa: E402

BIN = sys.argv.pop(1)
LIMIT_S = 60  # only a hang takes so long
ADDRESSES = {"a": os.environ["TWO_HOSTS_A"], "b": os.environ["TWO_HOSTS_B"]}
ENTER = {"a": [], "b": two_hosts.enter_b()}
SERVERS = {"n1": ("a", 7471), "n2": ("b", 7471), "n3": ("b", 7472)}
ETCD_PORT = 2379
ETCD = f"http://{ADDRESSES['b']}:{ETCD_PORT}"
CLUSTER = ["--etcd=" + ETCD, "--cluster=c"]
GROUP = "cluster:" + ",".join(f"{ADDRESSES[side]}:{port}" for side, port in SERVERS.values())


def run(side, *words):
    return subprocess.run([*ENTER[side], *words], check=False, capture_output=True, text=True)


def start(side, *words, **streams):
    environment = os.environ | {"SOFTVERBS_NET": ADDRESSES[side], "LD_LIBRARY_PATH": os.path.join(BIN, "../lib/softverbs")}
    return subprocess.Popen([*ENTER[side], *words], env=environment, text=True, **streams)


def set_way(change, side):
    """Lets packets from this side vanish ("add"), or not any more ("del")."""
    other = ADDRESSES["b" if side == "a" else "a"]
    made = run(side, "ip", "route", change, "blackhole", other + "/32")
    if made.returncode != 0:
        raise RuntimeError(made.stderr)


class Client:
    """A takeover_client."""

    def __init__(self, side, numbers, operations):
        self.process = start(side, os.path.join(BIN, "takeover_client"), "--server=" + GROUP, "--numbers=" + numbers,
                             "--operations=" + operations, "--pause_us=200", stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def await_answers(self):
        if self.ask("answers 20") != "ok\n":
            raise RuntimeError("a client ended")

    def end(self):
        return json.loads(self.ask("end"))


class GroupPartition(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.start_etcd()
        made = run("a", os.path.join(BIN, "kvcli"), "cluster", "init", *CLUSTER, "--group=g1:n1,n2,n3")
        self.assertEqual(made.returncode, 0, made.stderr)
        for name in SERVERS:
            self.start_server(name)
            self.await_group(f"{name} is in sync", lambda group, name=name: name in group["in_sync"])
        if self.group()["primary"] != "n1":  # on a machine that stalled, another one took over
            self.hand_over_to_n1()
        numbers = os.path.join(self.folder, "numbers")
        self.reader = Client("a", numbers, "get")
        self.writer = Client("b", numbers, "get,put,incr")
        for client in (self.reader, self.writer):
            self.addCleanup(client.process.wait)
            self.addCleanup(client.process.kill)
            client.await_answers()

    def start_etcd(self):
        peer = f"http://{ADDRESSES['b']}:{ETCD_PORT + 1}"
        self.run_until_the_end("b", "etcd", "etcd", "--data-dir", os.path.join(self.folder, "etcd"), "--listen-client-urls", ETCD,
                               "--advertise-client-urls", ETCD, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                               "--initial-cluster", "default=" + peer)
        end = time.monotonic() + LIMIT_S
        while run("b", "curl", "-sf", ETCD + "/health").returncode != 0:
            if time.monotonic() > end:
                self.fail("no etcd: " + self.log("etcd"))
            time.sleep(0.05)

    def start_server(self, name):
        side, port = SERVERS[name]
        self.run_until_the_end(side, name, os.path.join(BIN, "kvserver"), "--device=soft", "--memory=64M", "--busy_poll_us=0",
                               f"--listen={ADDRESSES[side]}:{port}", "--name=" + name, *CLUSTER)

    def run_until_the_end(self, side, name, *words):
        with open(os.path.join(self.folder, name + ".log"), "w", encoding="utf-8") as log:
            process = start(side, *words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def log(self, name):
        with open(os.path.join(self.folder, name + ".log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def group(self):
        status = run("b", os.path.join(BIN, "kvcli"), "cluster", "status", "--json", *CLUSTER)
        self.assertEqual(status.returncode, 0, status.stderr)
        return json.loads(status.stdout)["groups"][0]

    def await_group(self, what, holds):
        end = time.monotonic() + LIMIT_S
        while not holds(self.group()):
            if time.monotonic() > end:
                logs = "".join(f"--- {name}\n{self.log(name)[-3000:]}" for name in SERVERS)
                self.fail(f"{what}: {self.group()}\n{logs}")
            time.sleep(0.05)

    def cut(self, *sides):
        """Cuts the ways from these sides until n1 is out, and side B is served. Heals them, and waits for n1."""
        for side in sides:
            set_way("add", side)
        try:
            self.await_group("n1 is out", lambda group: "n1" not in group["in_sync"] and group["primary"] != "n1")
            self.writer.await_answers()
        finally:
            for side in sides:
                set_way("del", side)
        self.await_group("n1 is back", lambda group: len(group["in_sync"]) == len(SERVERS))
        self.writer.await_answers()
        self.reader.await_answers()

    def hand_over_to_n1(self):
        done = run("b", os.path.join(BIN, "kvcli"), "cluster", "handover", "g1", "n1", f"--wait={LIMIT_S}s", *CLUSTER)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.await_group("all are in sync", lambda group: len(group["in_sync"]) == len(SERVERS))

    def test_nothing_is_lost_or_out_of_date(self):
        self.cut("a", "b")  # n1's backups take over
        self.cut("a", "b")  # now n1 is a backup, and the reader a client far from the primary
        for side in ("a", "b"):
            self.hand_over_to_n1()
            self.reader.await_answers()
            self.cut(side)
        for client in (self.reader, self.writer):
            seen = client.end()
            print(seen)
            self.assertEqual((seen["lost"], seen["twice"], seen["wrong"]), (0, 0, 0))
            self.assertEqual(client.process.wait(LIMIT_S), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
