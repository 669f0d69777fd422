#!/usr/bin/env python3
"""Runs a whole cluster on this machine: etcd, and groups of kvservers on softverbs.

    local_cluster.py --build DIR [--groups 1] [--nodes 3] [--etcd 1|3] [--memory 256M] [--lease_ms 2000] [COMMAND ...]

Prints where everything is, and runs until Ctrl-C. With a COMMAND, runs that instead, and exits with
its code; GANNET_SERVER in its environment names the cluster, ETCD the URLs. All processes end with this
one, and what they wrote goes with them.
"""

import argparse
import base64
import contextlib
import ctypes
import errno
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

CLUSTER, GROUP = "c", "g1"  # of several groups, the first one
START_S = 60  # no start takes so long, however slow the machine is
STOP_S = 20
SERVER_PORTS = (10000, 32768)  # below those of connections, on Linux (ip_local_port_range) and on softverbs (port_name.cc)
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def softverbs_ports():
    """The ports that programs on softverbs have: abstract names that end with "/PORT"."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        names = [line.rpartition("@softverbs/cm/")[2].split("/") for line in file if "@softverbs/cm/" in line]
    return {int(it[2]) for it in names if len(it) > 2 and it[2].strip().isdigit()}


RESERVED = []  # sockets of this process whose names stand for ports


def reserve(port):
    """Returns whether nobody else reserved the port. The name is held until this process ends; tests use the same
    (free_port.cc)."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0gannet/port/{port}")
    except OSError:
        name.close()
        return False
    RESERVED.append(name)
    return True


def free_ports(count, host="127.0.0.1"):
    """Ports of an own address that nobody uses at this moment, nor gets by chance later: neither the system nor
    softverbs takes one of these for the near end of a connection, and no other call returns it while this process
    lives. So a server that starts again finds its port free."""
    ports, taken = [], softverbs_ports()
    with contextlib.ExitStack() as stack:
        while len(ports) < count:
            port = random.randrange(*SERVER_PORTS)
            probe = stack.enter_context(socket.socket())
            try:
                probe.bind((host, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
            if port not in taken and reserve(port):
                ports.append(port)
    return ports


class Failed(Exception):
    pass


class LocalCluster:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.processes = {}  # by name
        self.urls = []
        self.addresses = []
        self.address_of = {}  # of each server

    def log_of(self, name):
        return os.path.join(self.folder, name + ".log")

    def start(self, name, argv, stdout=subprocess.DEVNULL):
        with open(self.log_of(name), "w", encoding="utf-8") as log:
            self.processes[name] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=log,
                # Ctrl-C is for this process, which ends the others in order.
                start_new_session=True, preexec_fn=die_with_parent)
        return self.processes[name]

    def log(self, name):
        with open(self.log_of(name), encoding="utf-8", errors="replace") as log:
            return log.read()

    def logs(self):
        """The ends of all processes' logs."""
        return "\n".join(f"--- {name}\n{self.log(name)[-3000:]}" for name in self.processes)

    def fail(self, name, what):
        raise Failed(f"{name} {what}:\n" + "".join(self.log(name).splitlines(keepends=True)[-20:]))

    def kvcli(self, *words):
        return subprocess.run(
            [f"{self.options.build}/bin/kvcli", "cluster", *words, "--etcd=" + ",".join(self.urls),
             "--cluster=" + CLUSTER], check=False, capture_output=True, text=True)

    def hand_over(self, group, node, wait_s):
        """Has the group's primary hand over to this node. The primary drops the wish if the node is silent for a
        moment, so this asks again. Raises Failed after wait_s seconds."""
        end = time.monotonic() + wait_s
        while True:
            done = self.kvcli("handover", group, node, f"--wait={wait_s}s")
            if done.returncode == 0:
                return
            if time.monotonic() > end:
                raise Failed(done.stderr)
            time.sleep(0.1)

    def start_etcd(self):
        count = self.options.etcd
        host = self.etcd_host()
        ports = free_ports(2 * count, host)
        self.urls = [f"http://{host}:{port}" for port in ports[:count]]
        peers = [f"http://{host}:{port}" for port in ports[count:]]
        members = ",".join(f"e{i + 1}={peer}" for i, peer in enumerate(peers))
        for i, (url, peer) in enumerate(zip(self.urls, peers)):
            name = f"e{i + 1}"
            self.start(name, ["etcd", "--name", name, "--data-dir", os.path.join(self.folder, name),
                              "--listen-client-urls", url, "--advertise-client-urls", url,
                              "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                              "--initial-cluster", members, "--initial-cluster-token", self.folder,
                              "--logger", "zap", "--log-outputs", "stderr"])
        for i, url in enumerate(self.urls):
            self.await_etcd(f"e{i + 1}", url)

    def await_etcd(self, name, url):
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self.processes[name].poll() is not None:
                self.fail(name, "ended")
            try:
                with urllib.request.urlopen(url + "/health", timeout=1) as answer:
                    if json.load(answer)["health"] == "true":
                        return
            except (OSError, urllib.error.URLError):
                pass
            time.sleep(0.05)
        self.fail(name, "does not become healthy")

    def start_servers(self):
        each = self.options.nodes
        names = [f"n{i + 1}" for i in range(self.options.groups * each)]
        groups = [names[i:i + each] for i in range(0, len(names), each)]
        made = self.kvcli("init", *(f"--group=g{i + 1}:" + ",".join(group) for i, group in enumerate(groups)),
                          f"--lease_ms={self.options.lease_ms}")
        if made.returncode != 0:
            raise Failed(made.stderr)
        for name in names:
            self.start_server(name)
        self.await_in_sync(names)

    def etcd_host(self):
        return "127.0.0.1"

    def build_of(self, _name):
        """Where a server's program is."""
        return self.options.build

    def flags_of(self, _name):
        """More flags for a server. All stop together, so the last one need not wait for one that joins."""
        return ["--stop_wait_s=0"]

    def start_server(self, name):
        """Where it was, if it ran before."""
        if name not in self.address_of:
            self.address_of[name] = f"127.0.0.1:{free_ports(1)[0]}"
            self.addresses.append(self.address_of[name])
        address = self.address_of[name]
        self.start(name, [f"{self.build_of(name)}/bin/kvserver", "--device=soft", "--cluster=" + CLUSTER,
                          "--etcd=" + ",".join(self.urls), "--name=" + name, "--listen=" + address,
                          "--memory=" + self.options.memory, *self.flags_of(name)])

    def read(self, key):
        """What etcd has of the cluster at a key, "groups/g1" for example: None if it has nothing."""
        key = base64.b64encode(f"/gannet/{CLUSTER}/{key}".encode()).decode()
        request = urllib.request.Request(self.urls[0] + "/v3/kv/range", data=json.dumps({"key": key}).encode())
        with urllib.request.urlopen(request, timeout=START_S) as answer:
            items = json.load(answer).get("kvs", [])
        return json.loads(base64.b64decode(items[0]["value"])) if items else None

    def announced(self, name):
        """What tells a server's process from its former ones, as etcd has it: None if it has nothing."""
        return (self.read("nodes/" + name) or {}).get("incarnation")

    def start_again(self, name):
        """Starts a server that ran before, and waits until etcd knows the new process."""
        former = self.announced(name)
        self.start_server(name)
        self.await_announced(name, former)

    def await_announced(self, name, former):
        end = time.monotonic() + START_S
        while self.announced(name) == former:
            if time.monotonic() > end:
                self.fail(name, "does not announce itself")
            time.sleep(0.05)

    def check_running(self, names):
        """Fails if one of these processes has ended: nobody starts it again."""
        for name in names:
            if self.processes[name].poll() is not None:
                self.fail(name, f"ended ({self.processes[name].returncode})")

    def await_in_sync(self, names):
        end = time.monotonic() + START_S
        while True:
            self.check_running(names)
            status = self.kvcli("status", "--json")
            in_sync = [name for group in json.loads(status.stdout)["groups"] for name in group["in_sync"]]
            if sorted(in_sync) == sorted(names):
                return
            if time.monotonic() > end:
                self.fail(next(n for n in names if n not in in_sync), "does not get in sync")
            time.sleep(0.1)

    def primary(self):
        return json.loads(self.kvcli("status", "--json").stdout)["groups"][0]["primary"]

    def endpoint(self):
        return "cluster:" + ",".join(self.addresses)

    def describe(self):
        bin_folder = f"{self.options.build}/bin"
        etcd = ",".join(self.urls)
        lines = [f"etcd       {etcd}"]
        for i, address in enumerate(self.addresses):
            name = f"n{i + 1}"
            lines.append(f"{name:<10} {address}  pid {self.processes[name].pid}  {self.log_of(name)}")
        lines += ["", "to try, in another terminal:",
                  f"  {bin_folder}/kvcli --device=soft --server={self.endpoint()} put greeting hello",
                  f"  {bin_folder}/kvcli cluster status --etcd={etcd} --cluster={CLUSTER}",
                  f"  {bin_folder}/kvcli cluster handover {GROUP} n2 --etcd={etcd} --cluster={CLUSTER}",
                  f"  kill -9 {self.processes['n1'].pid}    and then status again",
                  "", "Ctrl-C ends all of it."]
        print("\n".join(lines), flush=True)

    def stop(self):
        """Servers first, while etcd is there."""
        for group in (False, True):
            those = [p for name, p in self.processes.items() if name.startswith("e") == group]
            for process in those:
                process.terminate()
            for process in those:
                try:
                    process.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def parse():
    parser = argparse.ArgumentParser(prog="./dev cluster", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--groups", type=int, default=1, help="groups, each with a part of the keys (1)")
    parser.add_argument("--nodes", type=int, default=3, help="kvservers of each group (3)")
    parser.add_argument("--etcd", type=int, default=1, choices=(1, 3), help="processes of etcd (1)")
    parser.add_argument("--memory", default="256M", help="of each kvserver (256M)")
    # Longer than kvcli's default: a busy machine may stop a process for longer than that.
    parser.add_argument("--lease_ms", type=int, default=2000, help="of the primary (2000)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="is run instead of waiting for Ctrl-C")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    if not 1 <= options.nodes <= 16:
        parser.error("--nodes is 1 to 16")
    if not 1 <= options.groups <= 16:
        parser.error("--groups is 1 to 16")
    return options


def on_signal(_number, _frame):
    raise KeyboardInterrupt


def main():
    options = parse()
    if shutil.which("etcd") is None:
        sys.exit("dev: etcd is missing: ./dev deps test installs it")
    signal.signal(signal.SIGTERM, on_signal)
    with tempfile.TemporaryDirectory(prefix="gannet-cluster-") as folder:
        cluster = LocalCluster(options, folder)
        try:
            cluster.start_etcd()
            cluster.start_servers()
            if options.command:
                environment = dict(os.environ, GANNET_SERVER=cluster.endpoint(),
                                   ETCD=",".join(cluster.urls),
                                   PATH=f"{options.build}/bin:{os.environ['PATH']}")
                return subprocess.run(options.command, env=environment, check=False).returncode
            cluster.describe()
            signal.pause()
        except KeyboardInterrupt:
            return 0
        except Failed as failure:
            print(f"dev: {failure}", file=sys.stderr)
            return 1
        finally:
            cluster.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
