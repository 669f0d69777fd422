#!/usr/bin/env python3
"""A whole cluster of real processes, as ./dev cluster runs it: hand over, lose servers, replace one.

    local_cluster_test.py BUILD
"""

import argparse
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

sys.dont_write_bytecode = True
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(SOURCE, "tools", "cluster"))
import local_cluster  # noqa: E402

BUILD = os.path.abspath(sys.argv.pop(1))
STEP_S = 60  # no step takes so long, however slow the machine is. Only a hang does
NODES = ["n1", "n2", "n3"]


class Cluster(local_cluster.LocalCluster):
    """Each server has a program of its own, which a test may take away."""

    def build_of(self, name):
        build = os.path.join(self.folder, "build-" + name)
        program = os.path.join(build, "bin", "kvserver")
        if not os.path.exists(program):
            os.makedirs(os.path.dirname(program))
            os.symlink(os.path.join(BUILD, "lib"), os.path.join(build, "lib"))
            try:
                os.link(f"{BUILD}/bin/kvserver", program)
            except OSError:  # another file system
                shutil.copy2(f"{BUILD}/bin/kvserver", program)
        return build


class ClusterTest(unittest.TestCase):
    def start(self, groups, nodes):
        folder = tempfile.TemporaryDirectory(prefix="gannet-cluster-test-")
        self.addCleanup(folder.cleanup)
        options = argparse.Namespace(build=BUILD, groups=groups, nodes=nodes, etcd=1, memory="64M", lease_ms=1000)
        self.cluster = Cluster(options, folder.name)
        self.addCleanup(self.cluster.stop)
        self.cluster.start_etcd()
        self.cluster.start_servers()

    def kvcli(self, *words, server=None):
        done = subprocess.run([f"{BUILD}/bin/kvcli", "--device=soft", "--deadline_ms=30000",
                               "--server=" + (server or self.cluster.endpoint()), *words],
                              check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class PortsTest(unittest.TestCase):
    def test_no_connection_takes_the_port_of_a_server_that_is_down(self):
        with open(os.path.join(SOURCE, "softverbs", "cm", "port_name.cc"), encoding="utf-8") as file:
            ranges = re.findall(r"constexpr PortRange k\w+ = \{(\d+), (\d+)\};", file.read())
        self.assertEqual(len(ranges), 2)
        ports = local_cluster.free_ports(100)
        self.assertEqual(len(set(ports)), 100)
        self.assertLess(max(ports), min(int(first) for first, _ in ranges))

    def test_nobody_else_gets_it_while_this_process_lives(self):
        (port,) = local_cluster.free_ports(1)
        get = f"import local_cluster; print(local_cluster.reserve({port}))"
        done = subprocess.run([sys.executable, "-B", "-c", get], capture_output=True, text=True, check=True,
                              env={**os.environ, "PYTHONPATH": os.path.join(SOURCE, "tools", "cluster")})
        self.assertEqual(done.stdout, "False\n")


class SeveralGroupsTest(ClusterTest):
    def setUp(self):
        self.start(groups=2, nodes=1)

    def test_each_key_is_in_the_group_that_the_map_says(self):
        for i in range(20):
            self.kvcli("put", f"key{i}", f"value{i}")
        # One member is enough to find all of them.
        for address in self.cluster.addresses:
            for i in range(20):
                self.assertEqual(self.kvcli("get", f"key{i}", server=address), f"value{i}")
        items = [int(words[1]) for words in map(str.split, self.kvcli("stats").splitlines()) if words[0] == "items"]
        self.assertEqual(sum(items), 20)
        self.assertEqual(len([n for n in items if n > 0]), 2, "both groups have keys")
        names = [words[1] for words in map(str.split, self.kvcli("info").splitlines()) if words[0] == "name"]
        self.assertEqual(names, ["g1", "g2"])

    def test_what_the_map_closes_is_refused_until_it_is_open_again(self):
        self.kvcli("put", "key", "before")
        config = self.cluster.read("config")
        everything = list(range(len(config["partitions"])))
        config.update(format=2, revision=1, changed=[1] * len(everything), closed=everything, lost=[1, 1])
        self.write("config", config)
        self.await_put("refused", succeeds=False)
        config.update(revision=2, changed=[2] * len(everything), closed=[])
        self.write("config", config)
        self.await_put("after", succeeds=True)
        self.assertEqual(self.kvcli("get", "key"), "after")

    def write(self, key, value):
        """Writes what etcd has of the cluster at a key."""
        encode = lambda text: base64.b64encode(text.encode()).decode()  # noqa: E731
        body = {"key": encode(f"/gannet/{local_cluster.CLUSTER}/{key}"), "value": encode(json.dumps(value))}
        request = urllib.request.Request(self.cluster.urls[0] + "/v3/kv/put", json.dumps(body).encode())
        urllib.request.urlopen(request, timeout=STEP_S).close()

    def await_put(self, value, succeeds):
        """Puts until that succeeds, or until it is refused. Servers hear of a map a little later."""
        end = time.monotonic() + STEP_S
        while True:
            done = subprocess.run([f"{BUILD}/bin/kvcli", "--device=soft", "--server=" + self.cluster.endpoint(),
                                   "put", "key", value], check=False, capture_output=True, text=True)
            if (done.returncode == 0) == succeeds:
                return
            self.assertLess(time.monotonic(), end, done.stderr)

    def test_groups_beside_other_servers_are_refused(self):
        done = subprocess.run([f"{BUILD}/bin/kvcli", "--device=soft",
                               "--server=" + ",".join(self.cluster.addresses), "get", "key"],
                              check=False, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is a group of a cluster of several groups", done.stderr)


class LocalClusterTest(ClusterTest):
    def setUp(self):
        self.start(groups=1, nodes=len(NODES))

    def group(self):
        status = self.cluster.kvcli("status", "--json")
        self.assertEqual(status.returncode, 0, status.stderr)
        return json.loads(status.stdout)["groups"][0]

    def await_group(self, what, holds):
        end = time.monotonic() + STEP_S
        while not holds(self.group()):
            if time.monotonic() > end:
                self.fail(f"{what}: {self.group()}\n{self.cluster.logs()}")
            time.sleep(0.05)

    def await_all_in_sync(self):
        self.await_group("all are in sync", lambda group: sorted(group["in_sync"]) == NODES)

    def kill(self, name):
        self.cluster.processes[name].kill()
        self.cluster.processes[name].wait()

    def test_hands_over(self):
        self.kvcli("put", "key", "value")
        before = self.group()
        other = next(n for n in NODES if n != before["primary"])
        # As an upgrade does, or who builds anew.
        os.unlink(os.path.join(self.cluster.build_of(before["primary"]), "bin", "kvserver"))
        self.cluster.hand_over("g1", other, STEP_S)
        self.assertEqual(self.group()["primary"], other)
        self.assertEqual(self.kvcli("get", "key"), "value")
        # The former primary executes itself again, and joins.
        self.await_all_in_sync()
        self.assertIn("executes itself again", self.cluster.log(before["primary"]))
        self.assertIsNone(self.cluster.processes[before["primary"]].poll(), "it is the same process")
        self.assertIsNone(self.group()["handover"], "the wish is gone")

    def test_a_primary_that_was_stopped_joins_again(self):
        self.kvcli("put", "key", "value")
        primary = self.group()["primary"]
        process = self.cluster.processes[primary]
        process.send_signal(signal.SIGSTOP)
        self.await_group("another takes over", lambda group: group["primary"] != primary)
        self.assertEqual(self.kvcli("get", "key"), "value")
        self.kvcli("put", "key", "newer")
        process.send_signal(signal.SIGCONT)
        self.await_all_in_sync()
        self.assertEqual(self.kvcli("get", "key"), "newer")

    def test_a_primary_that_is_terminated_hands_over_first(self):
        self.kvcli("put", "key", "value")
        primary = self.group()["primary"]
        process = self.cluster.processes[primary]
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(STEP_S), 0)
        self.assertNotEqual(self.group()["primary"], primary)
        self.assertIn("hands over to", self.cluster.log(primary))
        self.assertEqual(self.kvcli("get", "key"), "value")
        self.cluster.start_server(primary)
        self.await_all_in_sync()

    def test_a_killed_primary_is_replaced_by_another_node(self):
        self.kvcli("put", "key", "value")
        primary = self.group()["primary"]
        self.kill(primary)
        self.await_group("another takes over", lambda group: group["primary"] != primary)
        self.assertEqual(self.kvcli("get", "key"), "value")
        removed = self.cluster.kvcli("remove", "g1", primary)
        self.assertEqual(removed.returncode, 0, removed.stderr)
        added = self.cluster.kvcli("add", "g1", "n4")
        self.assertEqual(added.returncode, 0, added.stderr)
        self.cluster.start_server("n4")
        self.await_group("n4 is in sync", lambda group: "n4" in group["in_sync"])
        self.assertEqual(len(self.group()["in_sync"]), len(NODES))

    def test_serves_without_etcd_and_takes_over_when_it_is_back(self):
        self.kvcli("put", "key", "value")
        primary = self.group()["primary"]
        etcd = self.cluster.processes["e1"]
        etcd.send_signal(signal.SIGSTOP)
        self.kvcli("put", "key", "without etcd")
        self.assertEqual(self.kvcli("get", "key"), "without etcd")
        self.kill(primary)
        waiting = subprocess.Popen(
            [f"{BUILD}/bin/kvcli", "--device=soft", f"--deadline_ms={STEP_S * 1000}",
             "--server=" + self.cluster.endpoint(), "get", "key"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(waiting.kill)
        etcd.send_signal(signal.SIGCONT)
        self.assertEqual(waiting.communicate(timeout=STEP_S)[0], "without etcd")
        self.assertNotEqual(self.group()["primary"], primary)

    # The last member that is left was out when the others were lost. It has nothing.
    def test_forces_a_member_that_was_out(self):
        self.kvcli("put", "key", "value")
        last = next(n for n in NODES if n != self.group()["primary"])
        self.kill(last)
        self.await_group("it is out", lambda group: last not in group["in_sync"])
        for name in NODES:
            self.kill(name)
        # A process that was never in sync announces itself, and is no primary by itself. Until then, force
        # would name the former one. etcd still has those that were in sync, and calls them better if they lived
        # long enough (a minute) to announce what they had applied.
        self.cluster.start_again(last)
        before = self.group()
        forced = self.cluster.kvcli("force", "g1", "--from=" + last, "--lose-data", "--even-if-worse")
        self.assertEqual(forced.returncode, 0, forced.stderr)
        self.assertIn("lost: what only", forced.stderr)
        self.kvcli("put", "key", "newer")
        self.assertEqual(self.kvcli("get", "key"), "newer")
        group = self.group()
        self.assertEqual((group["primary"], group["epoch"]), (last, before["epoch"] + 1))
        other = next(n for n in NODES if n != last)
        self.cluster.start_server(other)
        self.await_group("it joins", lambda group: other in group["in_sync"])

    def test_a_removed_backup_ends(self):
        backup = next(n for n in NODES if n != self.group()["primary"])
        removed = self.cluster.kvcli("remove", "g1", backup)
        self.assertEqual(removed.returncode, 0, removed.stderr)
        self.assertEqual(self.cluster.processes[backup].wait(STEP_S), 1)
        self.assertIn(f"node {backup} is in no group of cluster c", self.cluster.log(backup))
        self.kvcli("put", "key", "value")


class CommandTest(unittest.TestCase):
    def test_a_server_says_why_it_cannot_be_a_member(self):
        member = ["--cluster=c", "--etcd=http://127.0.0.1:1", "--name=n1", "--listen=127.0.0.1:0", "--device=soft"]
        for flags, code, said in (
                (["--cluster=c"], 2, "--cluster needs --etcd"),
                (["--etcd=http://127.0.0.1:1"], 2, "--etcd is of no use without --cluster"),
                (member + ["--restore_from=/nowhere"], 2, "--restore_from cannot be used"),
                (member + ["--sync=always"], 2, "--sync=always needs --data=DIR"),
                (member + ["--etcd=127.0.0.1"], 1, "is no URL of etcd"),
                (member, 1, "Does etcd run at the URLs of --etcd?")):
            done = subprocess.run([f"{BUILD}/bin/kvserver", *flags], check=False, capture_output=True, text=True)
            self.assertEqual(done.returncode, code, (flags, done.stderr))
            self.assertIn(said, done.stderr)

    def test_runs_a_command_and_ends_all_processes(self):
        done = subprocess.run(
            [os.path.join(SOURCE, "tools", "cluster", "local_cluster.py"), "--build", BUILD, "--nodes=1",
             "--memory=64M", "sh", "-c",
             "kvcli --device=soft put key value && kvcli cluster status --json --etcd=$ETCD --cluster=c; exit 7"],
            check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(json.loads(done.stdout.splitlines()[-1])["groups"][0]["in_sync"], ["n1"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
