#!/usr/bin/env python3
"""What it costs that a group has each write on several servers: beside one server, and beside Redis.

    group.py --build DIR [--backups 1,2] [--runs 3] [--operations N] [--json FILE]

Runs etcd, a kvserver alone, and groups of a primary with so many backups, all on this machine, on softverbs. kvload puts
load on the server alone and on the group in turns, so what else the machine does meets both. Prints the median of the
runs: operations a second with 32 in flight (workloads w, PUTs alone, and a, half of them GETs), p50 of a PUT with one in
flight, READs of a GET; and what the group's are of the server's. Redis has one replica. A client sends batches of 32 SETs,
each with and without a WAIT 1 behind it, so a batch is answered when the replica has it. It needs etcd and redis-server.
"""

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cluster"))
sys.path.insert(0, HERE)
import local_cluster  # noqa: E402
import servers  # noqa: E402

DEPTH = 32
KEYS = 10_000
VALUE = b"v" * 100
ROWS = {  # what kvload is asked for, and the figure of its answer
    "PUTs a second (w)": (["--workload=w", f"--depth={DEPTH}"], lambda it: it["ops_per_second"]),
    "operations a second (a)": (["--workload=a", f"--depth={DEPTH}"], lambda it: it["ops_per_second"]),
    "p50 of a PUT alone, us": (["--workload=w", "--depth=1"], lambda it: it["ops"]["put"]["p50_us"]),
    "READs of a GET (a, warm)": (["--workload=a", f"--depth={DEPTH}", "--warm_up"],
                                 lambda it: it["verbs"]["get"]["reads_per_op"]),
}


class Kvload:
    def __init__(self, options, folder):
        self.options = options
        self.out = os.path.join(folder, "kvload.json")

    def __call__(self, server, *flags, operations=None):
        done = subprocess.run(
            [f"{self.options.build}/bin/kvload", "--device=soft", f"--server={server}", f"--records={KEYS}",
             f"--operations={operations or self.options.operations}", f"--json={self.out}", *flags],
            env=os.environ | servers.softverbs(self.options.build), check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise local_cluster.Failed(done.stdout + done.stderr)
        with open(self.out, encoding="utf-8") as file:
            return json.load(file)


def beside(kvload, options, alone, group):
    """Returns for each row the medians of the server alone and of the group."""
    for server in (alone, group):
        kvload(server, "--phase=load", "--workload=w")
    rows = {}
    for name, (flags, figure) in ROWS.items():
        operations = options.operations // (DEPTH if "--depth=1" in flags else 1)
        runs = [[figure(kvload(server, "--phase=run", *flags, operations=operations)) for server in (alone, group)]
                for _ in range(options.runs)]
        one, many = (statistics.median(column) for column in zip(*runs))
        rows[name] = {"alone": one, "group": many, "ratio": many / one if one else None, "runs": runs}
    return rows


def measure_group(options, backups, folder, alone):
    options.nodes, options.groups, options.etcd = backups + 1, 1, 1
    cluster = local_cluster.LocalCluster(options, folder)
    try:
        cluster.start_etcd()
        cluster.start_servers()
        return beside(Kvload(options, folder), options, alone, cluster.endpoint())
    finally:
        cluster.stop()


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Redis:
    """A connection that sends batches which were made before."""

    def __init__(self, address):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)))

    def ask(self, request, lines):
        self.socket.sendall(request)
        answer = b""
        while answer.count(b"\r\n") < lines:
            piece = self.socket.recv(1 << 16)
            if not piece:
                raise local_cluster.Failed("redis-server closed the connection")
            answer += piece
        if b"-" in answer[:1] or b"\r\n-" in answer:
            raise local_cluster.Failed(answer.decode())
        return answer

    def sets_a_second(self, wait, operations):
        batches = []
        for first in range(0, KEYS, DEPTH):
            sets = b"".join(command(b"SET", b"key%013d" % (first + i), VALUE) for i in range(DEPTH))
            batches.append(sets + (command(b"WAIT", b"1", b"10000") if wait else b""))
        done, began = 0, time.monotonic()
        while done < operations:
            answer = self.ask(batches[done // DEPTH % len(batches)], DEPTH + wait)
            if wait and not answer.endswith(b":1\r\n"):
                raise local_cluster.Failed("the replica does not answer")
            done += DEPTH
        return done / (time.monotonic() - began)


def measure_redis(options):
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(servers.redis()) for _ in range(2))
        Redis(second).ask(command(b"REPLICAOF", *(word.encode() for word in first.split(":"))), 1)
        connection = Redis(first)
        end = time.monotonic() + servers.START_SECONDS
        connection.ask(command(b"SET", b"a", b"1"), 1)
        while b":1" not in connection.ask(command(b"WAIT", b"1", b"100"), 1):
            if time.monotonic() > end:
                raise local_cluster.Failed("the replica does not come")
        return {name: statistics.median(connection.sets_a_second(wait, options.operations) for _ in range(options.runs))
                for name, wait in (("SETs a second", False), ("SETs a second, WAIT 1", True))}


def show(result):
    for backups, rows in result["groups"].items():
        print(f"{backups} backup{'s' if backups > 1 else ''}{'':19} {'alone':>12} {'group':>12} {'ratio':>7}")
        for name, row in rows.items():
            ratio = "" if row["ratio"] is None else f"{row['ratio']:7.2f}"
            print(f"  {name:27} {row['alone']:12,.3f} {row['group']:12,.3f} {ratio}")
    puts = [rows["PUTs a second (w)"]["group"] for backups, rows in result["groups"].items() if backups == 1]
    for name, figure in result["redis"].items():
        beside_it = f"; a group with one backup: {puts[0] / figure:.2f} times" if puts else ""
        print(f"Redis with one replica, {name}: {figure:,.0f}{beside_it}")
    print(f"{result['cores']} cores, load average {result['load_average']:.1f} at the end")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--backups", default="1,2")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--memory", default="256M")
    # Longer than kvcli's default: a busy machine may stop a process for longer than that.
    parser.add_argument("--lease_ms", type=int, default=5000)
    parser.add_argument("--json")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    return options


def main():
    options = parse()
    groups = {}
    for backups in map(int, options.backups.split(",")):
        with tempfile.TemporaryDirectory(prefix="gannet-group-") as folder, \
                servers.gannet(options.build, f"--memory={options.memory}") as alone:
            groups[backups] = measure_group(options, backups, folder, alone)
    result = {"groups": groups, "redis": measure_redis(options), "cores": os.cpu_count(),
              "load_average": os.getloadavg()[0]}
    show(result)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)


if __name__ == "__main__":
    sys.exit(main())
