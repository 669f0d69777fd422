#!/usr/bin/env python3
"""Runs every command of docs/cluster.md and docs/cluster-lost.md, in the pages' order, on this machine.

    commands_test.py BUILD

A command of the page is what stands behind four spaces and begins with kvcli or kvserver, maybe behind "$ ", and each
`kvcli ...` within the text that has flags. Addresses and sizes are replaced by this machine's.
"""

import argparse
import base64
import json
import os
import re
import shlex
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
PAGES = [os.path.join(SOURCE, "docs", page) for page in ("cluster.md", "cluster-lost.md")]
OWN_GROUP = f"239.78.{os.getpid() // 250 % 250}.{os.getpid() % 250}"  # other tests may run at the same time
STEP_S = 60  # no step takes so long, however slow the machine is. Only a hang does


def commands():
    """Returns the pages' commands, in order."""
    text = ""
    for name in PAGES:
        with open(name, encoding="utf-8") as page:
            text += page.read()
    found = re.findall(r"^    (?:\$ )?((?:kvcli|kvserver|\./dev) [^#\n]*)|`(kvcli --server=[^`]*)`", text, re.MULTILINE)
    return [(block or inline).strip() for block, inline in found]


class CommandsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gannet-commands-test-")
        self.addCleanup(folder.cleanup)
        options = argparse.Namespace(build=BUILD, groups=1, nodes=3, etcd=1, memory="64M", lease_ms=2000)
        self.cluster = local_cluster.LocalCluster(options, folder.name)
        self.addCleanup(self.cluster.stop)
        self.cluster.start_etcd()
        self.ports = dict(zip(("n1", "n2", "n3", "n4"), local_cluster.free_ports(4)))
        self.page = iter(commands())

    def next(self, begins):
        """Returns the page's next command, which has to begin so, for this machine."""
        command = next(self.page)
        self.assertTrue(command.startswith(begins), f"{PAGES} have {command!r}; this test expects {begins!r}")
        command = command.replace("...", "--etcd=http://10.0.0.9:2379 --cluster=c")
        command = command.replace("http://10.0.0.9:2379", self.cluster.urls[0]).replace("64G", "64M")
        command = command.replace("239.71.71.71", OWN_GROUP)
        for name, port in self.ports.items():
            command = command.replace(f"10.0.0.{name[1]}:7471", f"127.0.0.1:{port}")
        return command

    def run_next(self, begins, instead_of_n1="n1"):
        words = shlex.split(self.next(begins).replace("--from=n1", "--from=" + instead_of_n1))
        done = subprocess.run([f"{BUILD}/bin/{words[0]}", *words[1:]], check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

    def start_server(self, command, name):
        """Starts a server by the page's command for n1."""
        words = shlex.split(command.replace("--name=n1", "--name=" + name).replace(str(self.ports["n1"]), str(self.ports[name])))
        self.cluster.start(name, [f"{BUILD}/bin/{words[0]}", *words[1:], "--device=soft", f"--listen=127.0.0.1:{self.ports[name]}",
                                  *self.cluster.flags_of(name)])

    def kill(self, name):
        self.cluster.processes[name].kill()
        self.cluster.processes[name].wait()

    def status(self):
        return self.cluster.kvcli("status").stdout

    def await_status(self, *wanted):
        end = time.monotonic() + STEP_S
        while not all(re.search(it, self.status()) for it in wanted):
            self.assertLess(time.monotonic(), end, (wanted, self.status(), self.cluster.logs()))
            time.sleep(0.1)

    def test_every_command_works(self):
        self.assertEqual(next(self.page), "./dev cluster")  # local_cluster_test
        self.run_dev_cluster(self.next("./dev cluster --nodes=5"), "5 of 5 in sync")
        self.run_dev_cluster(self.next("./dev cluster --groups=2"), "2 of 2 in sync")
        self.run_next("kvcli cluster init")
        server = self.next("kvserver --cluster")
        for name in ("n1", "n2", "n3"):
            self.start_server(server, name)
            self.await_status(rf"\b{name} +(primary|backup)")
        client = [f"{BUILD}/bin/kvcli", "--device=soft", *shlex.split(self.next("kvcli --server=cluster:"))[1:]]
        subprocess.run([*client, "put", "key", "value"], check=True, capture_output=True)
        self.assertRegex(self.run_next("kvcli cluster status"), r"group g1: .*epoch 1, primary n1, 3 of 3 in sync, lease 600 ms\n")

        data = os.path.join(self.cluster.folder, "data")
        os.mkdir(data, 0o700)
        on_disk = self.next("kvserver --cluster").split()[-1].replace("/var/lib/gannet", data)
        announces = self.next("kvserver").split()[-1]
        discover = f"{self.next('kvcli discover')} --device=soft {announces} --count=1 --wait={STEP_S}s"
        self.run_next("kvcli cluster add g1 n4")
        self.start_server(f"{server} {on_disk} {announces}", "n4")
        self.await_status(r"n4 +backup")
        heard = subprocess.run([f"{BUILD}/bin/kvcli", *discover.split()[1:]], check=True, capture_output=True, text=True)
        self.assertIn(f"--server=cluster:127.0.0.1:{self.ports['n4']}\n  n4 ", heard.stdout)
        self.run_next("kvcli cluster handover g1 n2")
        self.run_next("kvcli cluster remove g1 n1")
        self.await_status("primary n2, 3 of 3 in sync")
        got = subprocess.run([*client, "get", "key"], check=True, capture_output=True, text=True)
        self.assertEqual(got.stdout.strip(), "value")
        self.assertIn("min_copies 2, was 1", self.run_next("kvcli cluster set"))
        self.assertIn("lease_ms 900, was 600", self.run_next("kvcli cluster set"))

        for name in ("n2", "n3", "n4"):
            self.kill(name)
        self.start_server(server, "n3")
        self.assertIn("n3", self.run_next("kvcli cluster status"))
        self.run_next("kvcli cluster force g1 --from=n3")
        self.await_status("primary n3, 1 of 3 in sync")
        # integration_group_disk_test looks at what is on the disks.
        self.kill("n3")
        self.start_server(f"{server} {on_disk}", "n4")
        self.assertIn("n4", self.run_next("kvcli cluster status"))
        self.run_next("kvcli cluster force g1 --from=n1", "n4")
        self.await_status("primary n4, 1 of 3 in sync")

        self.lose_what_etcd_has()
        status = shlex.split(self.next("kvcli cluster status"))
        self.await_text([f"{BUILD}/bin/{status[0]}", *status[1:]], r"etcd has lost cluster c .*n4 \(primary in epoch")
        init = shlex.split(self.next("kvcli cluster init").replace("n1,n2,n3", "n2,n3,n4"))
        self.await_text([f"{BUILD}/bin/{init[0]}", *init[1:]], "n4 leads group g1 as before")
        self.assertEqual(list(self.page), [], f"commands of {PAGES} that this test does not run")

    def lose_what_etcd_has(self):
        whole = {"key": base64.b64encode(b"\0").decode(), "range_end": base64.b64encode(b"\0").decode()}
        with urllib.request.urlopen(f"{self.cluster.urls[0]}/v3/kv/deleterange", json.dumps(whole).encode(), STEP_S) as answer:
            self.assertGreater(int(json.load(answer)["deleted"]), 0)

    def await_text(self, command, wanted):
        """Runs a command again and again until it says what is wanted, however it ends."""
        end = time.monotonic() + STEP_S
        while True:
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if re.search(wanted, done.stdout + done.stderr):
                return
            self.assertLess(time.monotonic(), end, (wanted, done, self.cluster.logs()))

    def run_dev_cluster(self, command, in_sync):
        """What ./dev cluster does once all is built."""
        done = subprocess.run([os.path.join(SOURCE, "tools", "cluster", "local_cluster.py"), "--build", BUILD, "--memory=64M",
                               *shlex.split(command)[2:], "sh", "-c", "kvcli cluster status --etcd=$ETCD --cluster=c"],
                              check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(in_sync, done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
