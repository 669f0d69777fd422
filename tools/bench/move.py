#!/usr/bin/env python3
"""What clients notice while partitions move: a third group is added to two under load, and drained again.

    move.py --build DIR [--records N] [--value_size N] [--share 0.7] [--nodes 2] [--json FILE]

Runs etcd and groups of kvservers on this machine, on softverbs. kvload fills two groups, finds out how many operations of workload
b they do, and then asks for a share of these: first while nothing moves, then while `kvcli cluster balance` fills a third group, and
while `drain` empties it. Prints errors, p99 of GETs, READs of a GET, seconds, seconds for each GiB that moved, and how even the
groups are. p99 while moving is the median and the worst of the seconds within which partitions moved, of all operations, beside
the same of the quiet run.
"""

import argparse
import csv
import json
import os
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

GIB = 1 << 30
DEPTH = 16


class Load:
    """A kvload that runs for so many seconds."""

    def __init__(self, options, cluster, folder, name, seconds, rate=None):
        self.json = os.path.join(folder, name + ".json")
        self.csv = os.path.join(folder, name + ".csv")
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            [f"{options.build}/bin/kvload", "--device=soft", "--server=" + cluster.endpoint(), f"--records={options.records}",
             f"--value_size={options.value_size}", "--phase=run", "--workload=b", f"--depth={DEPTH}", f"--seconds={seconds}",
             f"--json={self.json}", f"--csv={self.csv}", *([f"--rate={rate}"] if rate else [])],
            env=os.environ | servers.softverbs(options.build), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self):
        out, _ = self.process.communicate()
        if self.process.returncode != 0:
            raise local_cluster.Failed(out)
        with open(self.json, encoding="utf-8") as file:
            self.result = json.load(file)
        with open(self.csv, encoding="utf-8") as file:
            self.rows = list(csv.DictReader(file))
        return self

    def figures(self, begin=0.0, end=float("inf")):
        """What it says of the whole run, and of the seconds from one moment to another."""
        within = [float(row["p99_us"]) for row in self.rows if begin <= float(row["seconds"]) <= end + 1]
        ops = self.result["ops"]
        return {"ops_per_second": self.result["ops_per_second"], "errors": sum(it["errors"] for it in ops.values()),
                "get_p99_us": ops["get"]["p99_us"], "reads_per_get": self.result["verbs"]["get"]["reads_per_op"],
                "second_p99_us": statistics.median(within) if within else None, "second_p99_us_worst": max(within, default=None)}


class Cluster(local_cluster.LocalCluster):
    def ask(self, *words):
        done = subprocess.run(
            [f"{self.options.build}/bin/kvcli", "--device=soft", "cluster", *words, "--json", "--etcd=" + self.urls[0],
             "--cluster=" + local_cluster.CLUSTER],
            env=os.environ | servers.softverbs(self.options.build), check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise local_cluster.Failed(done.stdout + done.stderr)
        return json.loads(done.stdout)

    def receivers(self):
        """What those who took partitions say of each taking: how long it took, and for how long nobody served them."""
        lines = [line for name in self.address_of for line in self.log(name).splitlines()]
        return [line for line in lines if " partitions more, of group " in line]  # each has its time

    def unevenness(self):
        """The largest difference of a group's bytes to their mean, as a share of it."""
        sizes = [group["bytes"] for group in self.ask("balance", "--dry-run")["after"]]
        mean = sum(sizes) / len(sizes)
        return max(abs(size - mean) for size in sizes) / mean


def fill(options, cluster):
    done = subprocess.run(
        [f"{options.build}/bin/kvload", "--device=soft", "--server=" + cluster.endpoint(), f"--records={options.records}",
         f"--value_size={options.value_size}", "--phase=load", "--workload=b"],
        env=os.environ | servers.softverbs(options.build), check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise local_cluster.Failed(done.stdout + done.stderr)


def under_load(options, cluster, folder, rate, name, *words):
    """Moves partitions while kvload runs."""
    load = Load(options, cluster, folder, name, options.seconds, rate)
    time.sleep(2)  # so that it runs
    begin = time.monotonic() - load.begun
    before = cluster.receivers()
    answer = cluster.ask(*words)
    end = time.monotonic() - load.begun
    over = load.process.poll() is not None
    figures = load.finish().figures(begin, end)
    size = sum(move["bytes"] for move in answer["moves"])
    return figures | {"partitions": answer["moved"], "bytes": size, "seconds": answer["seconds"],
                      "seconds_per_gib": answer["seconds"] * GIB / size if size else None,
                      "load_ended_before": over, "unevenness": cluster.unevenness(),
                      "takings": [line.partition("] has ")[2] for line in cluster.receivers() if line not in before]}


def measure(options, folder):
    options.groups, options.etcd = 2, 1
    cluster = Cluster(options, folder)
    try:
        cluster.start_etcd()
        cluster.start_servers()
        fill(options, cluster)
        capacity = Load(options, cluster, folder, "capacity", options.seconds / 2).finish().result["ops_per_second"]
        rate = max(1, int(capacity * options.share))
        result = {"capacity": capacity, "rate": rate,
                  "quiet": Load(options, cluster, folder, "quiet", options.seconds, rate).finish().figures()}
        names = list(cluster.address_of)
        members = [f"n{len(names) + 1 + i}" for i in range(options.nodes)]
        cluster.ask("add-group", "g3:" + ",".join(members), f"--lease_ms={options.lease_ms}")
        for name in members:
            cluster.start_server(name)
        cluster.await_in_sync(names + members)
        result["grow"] = under_load(options, cluster, folder, rate, "grow", "balance")
        result["after"] = Load(options, cluster, folder, "after", options.seconds, rate).finish().figures()
        result["shrink"] = under_load(options, cluster, folder, rate, "shrink", "drain", "g3")
        cluster.ask("remove-group", "g3")
        return result
    finally:
        cluster.stop()


def show(result):
    print(f"two groups: {result['capacity']:,.0f} operations a second of workload b; asked for: {result['rate']:,}")
    for name in ("quiet", "grow", "after", "shrink"):
        it = result[name]
        print(f"{name:7} {it['ops_per_second']:10,.0f}/s  errors {it['errors']}  GET p99 {it['get_p99_us']:,.0f} us  p99 of a second: "
              f"median {it['second_p99_us']:,.0f}, worst {it['second_p99_us_worst']:,.0f} us  READs of a GET {it['reads_per_get']:.3f}")
        if "seconds" in it:
            per_gib = f", {it['seconds_per_gib']:.1f} s for each GiB" if it["seconds_per_gib"] else ""
            print(f"{'':7} {it['partitions']} partitions, {it['bytes'] / GIB:.2f} GiB in {it['seconds']:.1f} s{per_gib}; "
                  f"uneven by {it['unevenness'] * 100:.1f} %" + ("; the load ended before" if it["load_ended_before"] else ""))
            for taking in it["takings"]:
                print(f"{'':7} {taking}")
    print(f"{result['cores']} cores, load average {result['load_average']:.1f} at the end")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--value_size", type=int, default=1000)
    parser.add_argument("--memory", default="1G", help="of each server (1G)")
    parser.add_argument("--nodes", type=int, default=2, help="servers of each group (2)")
    parser.add_argument("--share", type=float, default=0.7, help="of the capacity, that is asked for (0.7)")
    parser.add_argument("--seconds", type=float, default=30, help="of each load; longer than a move (30)")
    # Longer than kvcli's default: a busy machine may stop a process for longer than that.
    parser.add_argument("--lease_ms", type=int, default=5000)
    parser.add_argument("--json")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    return options


def main():
    options = parse()
    with tempfile.TemporaryDirectory(prefix="gannet-move-") as folder:
        result = measure(options, folder)
    result |= {"cores": os.cpu_count(), "load_average": os.getloadavg()[0]}
    show(result)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
    errors = sum(result[name]["errors"] for name in ("quiet", "grow", "after", "shrink"))
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
