#!/usr/bin/python3
"""A random walk of a cluster on two hosts, while clients read and write: two_hosts.py move_walk_test.py BUILD

Groups of two members, one in each network namespace, and etcd in A. Each step is one of these: partitions move, a group is added,
emptied and removed, all is balanced; a member is killed, stopped, or ended and started again as in an upgrade; the network between the
namespaces is cut, one way or both; etcd stops; a group hands over. Clients on both sides check what they are answered: no
write may be lost or take effect twice, no GET may be out of date, and no call may fail.

GANNET_WALK_STEPS=N makes N steps, TEST_SEED=N repeats the choices; the processes' timing differs.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "../../softverbs/tests/support"))
import move_test  # noqa: E402
import two_hosts  # noqa: E402
from move_test import BUILD, CheckingClient, local_cluster  # noqa: E402

STEPS = int(os.environ.get("GANNET_WALK_STEPS", "100"))
SEED = int(os.environ.get("TEST_SEED", random.randrange(1 << 32)))
PAUSE_S = (0.0, 2.0)  # between two steps
FAULT_S = (0.2, 5.0)  # how long somebody is stopped, or cut off
PARTITIONS = 1024
EXIT_UNAVAILABLE = 3
SIDES = "ab"
ADDRESS = {"a": os.environ["TWO_HOSTS_A"], "b": os.environ["TWO_HOSTS_B"]}
ENTER = {"a": [], "b": two_hosts.enter_b()}
FIRST_PORT = 7471
move_test.ENVIRONMENT["SOFTVERBS_NET"] = ADDRESS["a"]  # kvcli and kvload


class TwoHosts(local_cluster.LocalCluster):
    """Members with odd numbers are on side A, the others on side B."""

    def side_of(self, name):
        return SIDES[(int(name[1:]) + 1) % 2]

    def start_server(self, name):
        side = self.side_of(name)
        address = f"{ADDRESS[side]}:{FIRST_PORT + int(name[1:])}"
        if name not in self.address_of:
            self.address_of[name] = address
            self.addresses.append(address)
        self.start(name, [*ENTER[side], "env", "SOFTVERBS_NET=" + ADDRESS[side], f"{BUILD}/bin/kvserver", "--device=soft", "--cluster=c",
                          "--etcd=" + ",".join(self.urls), "--name=" + name, "--listen=" + address, "--memory=64M", *self.flags_of(name)])

    def etcd_host(self):
        return ADDRESS["a"]


class Walk(move_test.Moves):
    def make_cluster(self, options, folder):
        return TwoHosts(options, folder)

    def make_client(self, side, operations):
        client = CheckingClient(self.cluster.endpoint(), "--operations=" + operations, "--numbers=" + self.numbers,
                                before=[*ENTER[side], "env", "SOFTVERBS_NET=" + ADDRESS[side]])
        self.addCleanup(client.process.__exit__, None, None, None)
        self.addCleanup(client.process.kill)
        return client

    def make_clients(self, folder):
        self.numbers = os.path.join(folder, "numbers")
        self.client = self.make_client("a", "get,put,incr")
        self.reader = self.make_client("b", "get")

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.asked = None  # a kvcli that waits for moves
        self.refused = 0
        self.third = False
        self.stopped = None
        self.cut = []
        self.until = 0.0  # when the fault of this moment is over
        self.done = {}

    # --- what there is ---

    def groups(self):
        return {f"g{i + 1}": self.names[2 * i:2 * i + 2] for i in range(len(self.names) // 2)}

    def is_whole(self, group):
        """Whether both members are in sync, and nothing else is wrong: so it may lose one."""
        return not self.cut and not self.stopped and len(self.status(group)["in_sync"]) == 2

    def some_member(self):
        group, members = self.random.choice(list(self.groups().items()))
        return self.random.choice(members) if self.is_whole(group) else None

    # --- steps: each returns whether it did something ---

    def ask(self, *words):
        if self.asked is not None and self.asked.poll() is None:
            return False
        self.finish_asked()
        self.asked = self.start_kvcli(*words)
        return True

    def finish_asked(self):
        """kvcli may say that somebody cannot be reached now, as is true."""
        if self.asked is not None and self.asked.wait(move_test.STEP_S) == EXIT_UNAVAILABLE:
            self.asked.communicate()
            self.refused += 1
        elif self.asked is not None:
            self.finish(self.asked)
        self.asked = None

    def move(self):
        first = self.random.randrange(PARTITIONS)
        last = min(PARTITIONS - 1, first + self.random.randrange(200))
        return self.ask("move", f"{first}-{last}", "--to=" + self.random.choice(list(self.groups())))

    def balance(self):
        return self.ask("balance")

    def add(self):
        if self.third or self.cut or self.stopped or (self.asked and self.asked.poll() is None):
            return False
        self.add_group()
        self.third = True
        return True

    def empty(self):
        return self.third and self.ask("drain", "g3")

    def remove(self):
        """Only of an empty group: kvcli refuses to remove another one."""
        if not self.third or self.cut or self.stopped or (self.asked and self.asked.poll() is None):
            return False
        if self.status("g3")["partitions"] != 0:
            return False
        self.kvcli("remove-group", "g3")
        for name in self.names[4:]:
            process = self.cluster.processes.pop(name)
            process.terminate()
            process.wait()
            self.cluster.addresses.remove(self.cluster.address_of.pop(name))
        del self.names[4:]
        self.third = False
        return True

    def kill(self):
        name = self.some_member()
        if name is None:
            return False
        self.cluster.processes[name].kill()
        self.cluster.processes[name].wait()
        self.cluster.start_again(name)
        return True

    def upgrade(self):
        name = self.some_member()
        if name is None:
            return False
        self.cluster.processes[name].terminate()
        self.assertEqual(self.cluster.processes[name].wait(move_test.STEP_S), 0, self.cluster.log(name)[-2000:])
        self.cluster.start_again(name)
        return True

    def stop(self):
        name = self.some_member()
        if name is None:
            return False
        self.stopped = name
        self.cluster.processes[name].send_signal(signal.SIGSTOP)
        self.until = time.monotonic() + self.random.uniform(*FAULT_S)
        return True

    def cut_network(self):
        if not all(self.is_whole(group) for group in self.groups()):
            return False
        self.cut = self.random.choice([["a"], ["b"], ["a", "b"]])
        for side in self.cut:
            self.set_way("add", side)
        self.until = time.monotonic() + self.random.uniform(*FAULT_S)
        return True

    def set_way(self, change, side):
        other = ADDRESS["b" if side == "a" else "a"]
        subprocess.run([*ENTER[side], "ip", "route", change, "blackhole", other + "/32"], check=True)

    def stop_etcd(self):
        etcd = self.cluster.processes["e1"]
        etcd.send_signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0.2, 3))  # what is tested, not a way to wait for something
        etcd.send_signal(signal.SIGCONT)
        return True

    def hand_over(self):
        group, members = self.random.choice(list(self.groups().items()))
        if not self.is_whole(group):
            return False
        self.cluster.kvcli("handover", group, self.random.choice(members), "--wait=10s")  # it may fail, as somebody moves
        return True

    def heal(self):
        if self.stopped:
            self.cluster.processes[self.stopped].send_signal(signal.SIGCONT)
        for side in self.cut:
            self.set_way("del", side)
        self.stopped, self.cut = None, []

    # --- the walk ---

    def test_nothing_is_lost_twice_or_out_of_date(self):
        print(f"TEST_SEED={SEED}", flush=True)
        self.fill(5_000)
        steps = [self.move, self.move, self.balance, self.add, self.empty, self.remove, self.kill, self.upgrade, self.stop,
                 self.cut_network, self.stop_etcd, self.hand_over]
        made = 0
        while made < STEPS:
            if (self.stopped or self.cut) and time.monotonic() >= self.until:
                self.heal()
            step = self.random.choice(steps)
            began = time.monotonic()
            if not step():
                time.sleep(0.05)
                continue
            made += 1
            self.done[step.__name__] = self.done.get(step.__name__, 0) + 1
            print(f"{made}: {step.__name__}, {time.monotonic() - began:.1f} s, load {os.getloadavg()[0]:.0f}", flush=True)
            time.sleep(self.random.uniform(*PAUSE_S))
        self.heal()
        self.cluster.await_in_sync(self.names)
        self.finish_asked()
        self.kvcli("balance")
        self.assertEqual(self.wishes(), [])
        self.check_even()
        self.assertEqual(self.reader.ask("answers 20"), "ok\n", "the reader ended")
        seen = self.reader.end()
        print(self.done, f"kvcli was refused {self.refused} times;", seen)
        self.assertEqual([seen[it] for it in ("lost", "twice", "wrong", "unanswered")], [0] * 4, seen)
        self.check_client()


if __name__ == "__main__":
    unittest.main(verbosity=2)
