#!/usr/bin/env python3
"""Partitions move between groups of real kvservers, while clients read and write: move_test.py BUILD [TEST ...]

Clients check what they are answered (takeover_client): no write may be lost or take effect twice, no GET may be out of date, and
no call may fail. Quick, as ./dev test runs it, has two groups of one server each. The others have two servers in each group, and
stop or kill somebody in the middle.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tools", "cluster"))
import local_cluster  # noqa: E402

BUILD = os.path.abspath(sys.argv.pop(1))
STEP_S = 60  # no step takes so long, however slow the machine is. Only a hang does
LEASE_MS = 2000
ENVIRONMENT = os.environ | {"LD_LIBRARY_PATH": os.path.join(BUILD, "lib/softverbs")}


class CheckingClient:
    """A takeover_client, which checks its answers until its end."""

    def __init__(self, server, *flags, before=()):
        """`before`: words in front of the command, which say where it runs."""
        self.process = subprocess.Popen([*before, f"{BUILD}/bin/takeover_client", "--server=" + server, "--pause_us=200", *flags],
                                        env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, command):
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise local_cluster.Failed(f"the client ended with {self.process.wait()}") from None
        return self.process.stdout.readline()

    def end(self):
        return json.loads(self.ask("end"))


class Moves(unittest.TestCase):
    nodes = 2

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gannet-move-test-")
        self.addCleanup(folder.cleanup)
        options = argparse.Namespace(build=BUILD, groups=2, nodes=self.nodes, etcd=1, memory="64M", lease_ms=LEASE_MS)
        self.cluster = self.make_cluster(options, folder.name)
        self.addCleanup(self.cluster.stop)
        self.cluster.start_etcd()
        self.cluster.start_servers()
        self.names = list(self.cluster.address_of)
        self.make_clients(folder.name)
        self.await_answers()

    def make_cluster(self, options, folder):
        return local_cluster.LocalCluster(options, folder)

    def make_clients(self, _folder):
        self.client = CheckingClient(self.cluster.endpoint())
        self.addCleanup(self.client.process.__exit__, None, None, None)  # waits, and closes its pipes
        self.addCleanup(self.client.process.kill)

    def await_answers(self):
        self.assertEqual(self.client.ask("answers 20"), "ok\n", "the client ended")

    def start_kvcli(self, *words):
        process = subprocess.Popen(
            [f"{BUILD}/bin/kvcli", "--device=soft", "cluster", *words, "--etcd=" + self.cluster.urls[0], "--cluster=c"],
            env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def finish(self, process):
        """Returns what kvcli printed, which has to succeed."""
        try:
            out, err = process.communicate(timeout=STEP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"kvcli hangs:\n{out}\n{err}\n{self.cluster.kvcli('status').stdout}\n{self.cluster.logs()}")
        self.assertEqual(process.returncode, 0, f"{out}\n{err}\n{self.cluster.logs()}")
        return out

    def kvcli(self, *words):
        return self.finish(self.start_kvcli(*words))

    def fill(self, records, value_bytes=1000):
        done = subprocess.run([f"{BUILD}/bin/kvload", "--device=soft", "--server=" + self.cluster.endpoint(), f"--records={records}",
                               f"--value_size={value_bytes}", "--phase=load", "--workload=w"], env=ENVIRONMENT, check=False,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def wishes(self):
        return json.loads(self.kvcli("moves", "--json"))["moves"]

    def await_wishes(self, holds):
        end = time.monotonic() + STEP_S
        while not holds(self.wishes()):
            self.assertLess(time.monotonic(), end, "moves: " + self.cluster.logs())

    def status(self, group):
        return next(it for it in json.loads(self.kvcli("status", "--json"))["groups"] if it["name"] == group)

    def add_group(self):
        members = [f"n{len(self.names) + 1 + i}" for i in range(self.nodes)]
        self.kvcli("add-group", "g3:" + ",".join(members), f"--lease_ms={LEASE_MS}")
        for name in members:
            self.cluster.start_server(name)
        self.names += members
        self.cluster.await_in_sync(self.names)

    def check_even(self):
        plan = json.loads(self.kvcli("balance", "--dry-run", "--json"))
        self.assertEqual(plan["moves"], [])
        bytes_of = [group["bytes"] for group in plan["after"]]
        mean = sum(bytes_of) / len(bytes_of)
        for one in bytes_of:
            self.assertLess(abs(one - mean), mean / 20 + 1, bytes_of)

    def check_client(self):
        self.await_answers()
        report = self.client.end()
        for what in ("lost", "twice", "wrong", "unanswered"):
            self.assertEqual(report[what], 0, f"{report}\n{self.cluster.logs()}")


class Quick(Moves):
    nodes = 1

    def test_partitions_move_there_and_back(self):
        moved = json.loads(self.kvcli("move", "0-63", "--to=g2", "--json"))
        self.assertEqual(moved["given_up"], [])
        self.await_answers()
        json.loads(self.kvcli("move", "0-63", "--to=g1", "--json"))
        self.await_answers()
        self.assertEqual(self.wishes(), [])
        self.check_client()


class Slow(Moves):
    def test_a_cluster_grows_and_shrinks(self):
        self.fill(20_000)
        self.add_group()
        self.kvcli("balance")
        self.check_even()
        self.await_answers()
        self.kvcli("drain", "g3")
        self.assertEqual(self.status("g3")["partitions"], 0)
        self.kvcli("remove-group", "g3")
        self.await_answers()
        self.check_even()
        self.check_client()

    def balance_while(self, act):
        """Adds a group and balances; does something once moves are under way."""
        self.fill(20_000)
        self.add_group()
        balance = self.start_kvcli("balance")
        self.await_wishes(lambda wishes: wishes or balance.poll() is not None)
        act(balance)
        self.finish(balance)
        self.assertEqual(self.wishes(), [])
        self.check_even()
        self.check_client()

    def kill_primary(self, group):
        name = self.status(group)["primary"]
        self.cluster.processes[name].kill()
        self.cluster.processes[name].wait()
        self.cluster.start_again(name)

    def test_the_receivers_primary_is_killed(self):
        self.balance_while(lambda _: self.kill_primary("g3"))

    def test_the_givers_primary_is_killed(self):
        self.balance_while(lambda _: self.kill_primary("g1"))

    def test_etcd_is_away(self):
        def stop_etcd(_):
            etcd = self.cluster.processes["e1"]
            etcd.send_signal(signal.SIGSTOP)
            time.sleep(3)  # what is tested, not a way to wait for something
            etcd.send_signal(signal.SIGCONT)

        self.balance_while(stop_etcd)

    def test_who_asked_goes_away(self):
        self.fill(20_000)
        self.add_group()
        interrupted = self.start_kvcli("balance")
        self.await_wishes(lambda wishes: wishes or interrupted.poll() is not None)
        interrupted.send_signal(signal.SIGINT)
        _, err = interrupted.communicate(timeout=STEP_S)
        if interrupted.returncode != 0:  # it may have been done
            self.assertIn("go on without kvcli", err)
        killed = self.start_kvcli("balance")
        killed.kill()
        killed.communicate()
        self.kvcli("balance")
        self.assertEqual(self.wishes(), [])
        self.check_even()
        self.check_client()


if __name__ == "__main__":
    unittest.main()
