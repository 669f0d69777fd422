#!/usr/bin/env python3
"""A day in the life of a cache: four of Twitter's clusters together on one server that evicts.

    day.py [quick|full] --build DIR [--json FILE] [--parts life,stores] [--seconds N] [--rate N] [--tier DIR]

life: kvload processes with the loads of clusters 14, 23, 37 and 52 (kvload --cluster) use one kvserver
--on_full=evict with a memory file. Every value is verified. When the short-lived items have expired, the
server is stopped by SIGTERM, and kvserver --check walks through the file. Then a server takes the file
over: it allocates memory only for items that it finds, so memory that leaked before is free again, and
shows as a difference.

--tier gives that server a disk of ten times its memory, in DIR, and the loads of clusters 14, 37, 50 and 53, whose
values are long, and have eight times the memory. What lies on the disk must outlive the restart, and is read back.

stores: the hit ratios of Gannet, Redis and memcached with the same load, where each process takes the same
memory. Only GETs and PUTs, because kvload's backend for memcached has no more.

quick is a test of a few seconds. --seconds and --rate are those of the life. Exits with 1 if a value was wrong,
a process failed, or memory leaked. Stops every server that it started.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import memory as memory_part  # noqa: E402
import servers  # noqa: E402
from footprint import resident_bytes  # noqa: E402

MIB, GIB = 1 << 20, 1 << 30
# Each cluster's share of the records. Those whose items live for a day are loaded first, and take about
# 1.8 times the memory. Those whose items live for seconds are not, and put them.
CLUSTERS = {14: 0.42, 23: 0.10, 37: 0.01, 52: 0.47}
LOADED = (14, 52)
# With a disk behind the memory. Cluster 53, whose items live for a month, is most of it.
CLUSTERS_TIER = {14: 0.40, 37: 0.02, 50: 0.03, 53: 0.55}
LOADED_TIER = (14, 53)
TIER_SHARE = 10  # of the memory
TIER_MIN = 16 * 64 * MIB  # a disk has at least so much
TIER_SLACK = 64 << 10  # of its file: the header, and what the file system needs to find its blocks
# Reads and writes as in the clusters; deletes and counters are left out.
READS_AND_WRITES = {14: "get:0.65,put:0.13", 23: "get:0.36,put:0.31", 37: "get:0.63,put:0.37",
                    52: "get:0.91,put:0.09"}
TTL_SECONDS_SHORT = 120  # the longest of the clusters' times to live, but for those of a day

SCALES = {
    "full": {"memory": 2 * GIB, "records": 9_000_000, "rate": 16_000, "seconds": 1800, "samples": 60,
             "warmup_seconds": 0, "ttl_ms": None, "rest_seconds": TTL_SECONDS_SHORT,
             "tier": {"records": 2_200_000, "rate": 4_000, "ttl_ms": 60_000, "rest_seconds": 60},
             "stores": {"memory": 256 * MIB, "records": 1_125_000, "rate": 16_000, "seconds": 60,
                        "warmup_seconds": 20, "runs": 4}},
    "quick": {"memory": 64 * MIB, "records": 150_000, "rate": 8_000, "seconds": 2, "samples": 4,
              "warmup_seconds": 0, "ttl_ms": 1000, "rest_seconds": 1,
              "tier": {"records": 30_000, "rate": 1_000},
              "stores": {"memory": 64 * MIB, "records": 20_000, "rate": 4000, "seconds": 0.5, "warmup_seconds": 0,
                         "runs": 1}},
}
# After this time at rest the server must have removed everything that expired.
REST_SECONDS_MAX = 120


class Failed(Exception):
    pass


def say(text):
    print(f"day: {text}", file=sys.stderr, flush=True)


def json_of(command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                            timeout=300)
    if result.returncode != 0:
        raise Failed(f"exit code {result.returncode} of: {' '.join(command)}\n{result.stdout}{result.stderr}")
    return json.loads(result.stdout)


class Load:
    """kvload processes, one for each cluster, that run at the same time."""

    def __init__(self, build, backend, address, scale, mixes=None, tier=None):
        self.kvload = [f"{build}/bin/kvload", f"--backend={backend}", f"--server={address}",
                       "--deadline_ms=60000", *(["--device=soft"] if backend == "gannet" else [])]
        self.scale = scale
        self.mixes = mixes
        self.clusters = CLUSTERS_TIER if tier else CLUSTERS
        self.loaded = LOADED_TIER if tier else LOADED

    def records_of(self, cluster):
        return max(int(self.scale["records"] * self.clusters[cluster]), 10)

    def flags(self, cluster):
        flags = [f"--cluster={cluster}", f"--records={self.records_of(cluster)}"]
        if self.mixes:
            flags.append(f"--mix={self.mixes[cluster]}")
        short = cluster not in self.loaded and self.scale.get("ttl_ms")
        return [*flags, f"--ttl_ms={self.scale['ttl_ms']}"] if short else flags

    def records(self):
        for cluster in self.loaded:
            complaints = self.wait([(cluster, self.start(cluster, "--phase=load", "--depth=32"))])
            if complaints:
                raise Failed(complaints[0])

    def start(self, cluster, *flags):
        return subprocess.Popen([*self.kvload, *self.flags(cluster), *flags], stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True)

    @staticmethod
    def wait(processes):
        """Describes the processes that failed."""
        complaints = []
        for cluster, process in processes:
            error = process.communicate()[1]
            if process.returncode != 0:
                complaints.append(f"cluster {cluster}: kvload exits with {process.returncode}: {error[-2000:]}")
        return complaints

    def run(self, seconds, meanwhile=lambda: None):
        """Returns the reports by cluster. Calls meanwhile() while the processes run."""
        with tempfile.TemporaryDirectory() as folder:
            processes = [(cluster, self.start(
                cluster, "--phase=run", f"--seconds={seconds}", "--allow_misses", "--depth=16",
                f"--warmup_seconds={self.scale['warmup_seconds']}",
                f"--rate={self.scale['rate'] / len(self.clusters):.0f}", f"--seed={cluster}",
                f"--json={folder}/{cluster}")) for cluster in self.clusters]
            meanwhile()
            complaints = self.wait(processes)  # of a run that has a report, the report says more
            reports = {}
            for cluster in self.clusters:
                if not os.path.exists(f"{folder}/{cluster}"):
                    raise Failed("; ".join(complaints))
                with open(f"{folder}/{cluster}", encoding="utf-8") as file:
                    reports[cluster] = json.load(file)
            return reports

    def read_back(self):
        """GETs as many keys as were loaded. Every value is verified."""
        complaints = self.wait([(cluster, self.start(
            cluster, "--phase=run", "--mix=get:1", "--distribution=uniform", "--allow_misses", "--depth=16",
            f"--operations={self.records_of(cluster)}")) for cluster in self.loaded])
        if complaints:
            raise Failed("; ".join(complaints))


def figures_of(reports):
    """Sums and ratios of all clusters, and of each."""
    def hits(report):
        get = report["ops"]["get"]
        return get["count"] - get["not_found"], get["count"]
    found, asked = (sum(numbers) for numbers in zip(*map(hits, reports.values())))
    return {"hit_ratio": found / asked, "operations": sum(r["operations"] for r in reports.values()),
            "wrong_values": sum(r["wrong_values"] for r in reports.values()),
            "errors": sum(sum(r["errors"].values()) for r in reports.values()),
            "clusters": {cluster: {"hit_ratio": r["hit_ratio"], "operations": r["operations"],
                                   "ops_per_second": r["ops_per_second"], "ops": r["ops"]}
                         for cluster, r in reports.items()}}


# --- life

# Figures of the disk behind the memory.
ON_DISK = ("items_on_disk", "tier_disk", "tier_written", "tier_evicted", "tier_reads", "tier_reads_joined",
           "tier_reads_failed")


def bytes_in(folder):
    """Returns how many bytes the files in a folder take of the disk."""
    return sum(entry.stat().st_blocks * 512 for entry in os.scandir(folder))


class Life:
    def __init__(self, build, scale, tier=None):
        self.build = build
        self.scale = scale
        self.tier = tier  # a folder
        self.samples = []

    def server(self, path):
        tier = [f"--tier={self.tier}", f"--tier_bytes={max(TIER_SHARE * self.scale['memory'], TIER_MIN)}"]
        return servers.gannet(self.build, f"--memory={self.scale['memory']}", "--on_full=evict",
                              f"--memory_file={path}", *(tier if self.tier else []))

    def stats(self, address):
        return json_of([f"{self.build}/bin/kvcli", "--quiet", "--device=soft", "--deadline_ms=60000",
                        f"--server={address}", "--json", "stats"])

    def sample(self, address):
        stats = self.stats(address)
        self.samples.append({
            "items": stats["items"], "evicted": stats["items_evicted"], "expired": stats["items_expired"],
            "evicted_by_writes": stats["evicted_by_writes"], "moved": stats["items_moved"],
            "free_share": 1 - stats["heap_bytes"] / stats["heap_total"],
            "watermark_share": stats["eviction_watermark"] / stats["heap_total"],
            "evicted_age_ms": stats["evicted_age_ms"],
            **({name: stats[name] for name in ON_DISK} if self.tier else {})})

    def take_samples(self, address):
        count = self.scale["samples"]
        for i in range(count):
            time.sleep(self.scale["seconds"] / (count + 1))
            self.sample(address)
            say(f"sample {i + 1} of {count}: {json.dumps(self.samples[-1])}")

    def at_rest(self, address):
        """Waits until everything that expires has expired and been removed."""
        time.sleep(self.scale["rest_seconds"])
        before = self.stats(address)
        for _ in range(REST_SECONDS_MAX):
            time.sleep(1)
            after = self.stats(address)
            if all(after[name] == before[name] for name in ("items", "heap_bytes", "items_moved")):
                return after
            before = after
        say("the server still moves items")
        return before

    def check(self, path):
        return json_of([f"{self.build}/bin/kvserver", f"--check={path}", "--json"])

    def measure(self):
        path = f"/dev/shm/gannet-day-{os.getpid()}"
        try:
            return self.measure_with(path)
        finally:
            if os.path.exists(path):
                os.remove(path)

    def measure_with(self, path):
        with self.server(path) as address:
            load = Load(self.build, "gannet", address, self.scale, tier=self.tier)
            say("loading")
            load.records()
            say(f"running for {self.scale['seconds']} s")
            figures = figures_of(load.run(self.scale["seconds"], lambda: self.take_samples(address)))
            figures["resident"] = resident_bytes()
            say("waiting until everything short-lived has expired")
            before = self.at_rest(address)
        walk = self.check(path)
        with self.server(path) as address:
            after = self.stats(address)
            found = problems(figures, before, walk, after)
            disk = {}
            if self.tier:
                say("reading back")
                Load(self.build, "gannet", address, self.scale, tier=self.tier).read_back()
                disk = {"bytes": bytes_in(self.tier), "read_back": self.stats(address)}
                found += problems_of_disk(disk, before, after)
        return {**figures, "memory": self.scale["memory"], "seconds": self.scale["seconds"],
                "records": self.scale["records"], "rate": self.scale["rate"], "samples": self.samples,
                "before": before, "walk": walk, "after": after, "disk": disk, "problems": found}


def problems(figures, before, walk, after):
    """Lists everything that is wrong."""
    found = []

    def expect(holds, text):
        if not holds:
            found.append(text)
    expect(figures["wrong_values"] == 0, f"{figures['wrong_values']} wrong values")
    expect(figures["errors"] == 0, f"{figures['errors']} operations failed")
    expect(before["refused_heap_full"] + before["refused_index_full"] == 0, "writes were refused")
    expect(walk["stopped_in_order"] == 1, "the server did not stop in order")
    parts = sum(walk[name] for name in ("reserved_bytes", "index_bytes", "item_bytes", "unused_bytes"))
    expect(parts == walk["region_bytes"], f"the parts of the region have {parts} bytes together")
    slots = sum(walk[name] for name in ("slots_empty", "items", "slots_unfinished", "slots_left_over"))
    expect(slots == walk["slots_total"], f"{slots} slots are accounted for")
    for name in ("torn", "misplaced", "overlapping", "writes_under_way", "rolled_back"):
        expect(walk[name] == 0, f"{walk[name]} items are {name}")
    expect(walk["items"] == before["items"], f"the walk found {walk['items']} of {before['items']} items")
    expect(after["items"] == before["items"], f"the next server found {after['items']} items")
    leaked = before["heap_bytes"] - after["heap_bytes"]
    expect(leaked == 0, f"{leaked} bytes of the heap were taken, and belonged to no item")
    return found


def problems_of_disk(disk, before, after):
    """Lists everything that is wrong with the disk behind the memory."""
    found = []

    def expect(holds, text):
        if not holds:
            found.append(text)
    read_back = disk["read_back"]
    for stats in (before, after, read_back):
        expect(stats["tier_disk"] == 1, f"the disk is in state {stats['tier_disk']}")
        expect(stats["tier_reads_failed"] == 0, f"{stats['tier_reads_failed']} reads of the disk found nothing")
    expect(before["items_on_disk"] > 0 and before["tier_reads"] > 0, "the disk was not used")
    expect(after["items_on_disk"] == before["items_on_disk"],
           f"the next server has {after['items_on_disk']} of {before['items_on_disk']} values on the disk")
    expect(read_back["tier_reads"] > 0, "nothing was read back from the disk")
    leaked = disk["bytes"] - before["tier_bytes"]
    expect(0 <= leaked <= TIER_SLACK, f"the disk's files take {leaked} bytes more than the tier has")
    return found


# --- stores

def hit_ratios(build, scale):
    rows = []
    for name, (backend, start) in memory_part.stores(build).items():
        def run(limit, of=(backend, start)):
            with of[1](limit) as address:
                load = Load(build, of[0], address, scale, READS_AND_WRITES)
                load.records()
                return figures_of(load.run(scale["seconds"])), resident_bytes()
        rows.append(memory_part.at_equal_memory(say, name, run, scale["memory"], scale["runs"]))
    return {"memory": scale["memory"], "seconds": scale["seconds"], "records": scale["records"],
            "rate": scale["rate"], "rows": rows}


# --- tables

def percent(share):
    return f"{100 * share:.2f}"


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def life_tables(life):
    before, walk, after = life["before"], life["walk"], life["after"]
    last = life["samples"][-1]
    rows = [[cluster, f"{of['operations']:,}", f"{of['ops_per_second']:,.0f}", percent(of["hit_ratio"]),
             f"{of['ops']['get']['p50_us']:.0f} / {of['ops']['get']['p99_us']:.0f}"]
            for cluster, of in life["clusters"].items()]
    free = [sample["free_share"] for sample in life["samples"]]
    return "\n\n".join([
        f"{life['records']:,} records, {life['memory'] / MIB:,.0f} MiB, {life['seconds']} s: {life['operations']:,} "
        f"operations, {life['wrong_values']} wrong values, {life['errors']} errors",
        table(["cluster", "operations", "a second", "hits of GETs, %", "GET p50 / p99 us"], rows),
        f"Free memory of the heap while it was full (what fragmentation costs, with the watermark): {percent(min(free))} "
        f"to {percent(max(free))} %, at the end {percent(last['free_share'])} %, of which the watermark is "
        f"{percent(last['watermark_share'])} %. Evicted {before['items_evicted']:,} items, {before['evicted_by_writes']:,} of "
        f"them by writes; expired {before['items_expired']:,}; moved {before['items_moved']:,}. Resident: "
        f"{life['resident'] / MIB:,.0f} MiB.",
        f"At rest: {before['items']:,} items in {before['heap_bytes']:,} of {before['heap_total']:,} bytes. The walk: "
        f"{walk['reserved_bytes']:,} reserved + {walk['index_bytes']:,} index + {walk['item_bytes']:,} items + "
        f"{walk['unused_bytes']:,} unused = {walk['region_bytes']:,} bytes of the region, {walk['items']:,} items. The next server: "
        f"{after['items']:,} items in {after['heap_bytes']:,} bytes, so {before['heap_bytes'] - after['heap_bytes']:,} bytes had leaked.",
        *([disk_text(life)] if life["disk"] else []),
    ])


def disk_text(life):
    before, after, read_back = life["before"], life["after"], life["disk"]["read_back"]
    return (f"On the disk: {before['items_on_disk']:,} values at rest, and {after['items_on_disk']:,} of them behind the restart. "
            f"{before['tier_written']:,} were written, {before['tier_evicted']:,} went for want of room; {before['tier_reads']:,} "
            f"reads, {before['tier_reads_joined']:,} GETs joined one, {before['tier_reads_failed']:,} failed. Then "
            f"{read_back['tier_reads']:,} were read back, of which {read_back['tier_reads_failed']:,} failed. The files take "
            f"{life['disk']['bytes']:,} bytes, the tier has {before['tier_bytes']:,}.")


def stores_table(stores):
    header = ["store", "resident MiB", "hits of all GETs, %", *(f"cluster {c}" for c in CLUSTERS), "wrong values"]
    rows = [[row["store"], f"{row['resident'] / MIB:,.0f}", percent(row["hit_ratio"]),
             *(percent(of["hit_ratio"]) for of in row["clusters"].values()), row["wrong_values"]]
            for row in stores["rows"]]
    return (f"Hit ratios at the same memory ({stores['memory'] / MIB:,.0f} MiB), {stores['records']:,} records, "
            f"{stores['seconds']} s, {stores['rate']:,} operations a second\n\n" + table(header, rows))


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scale", nargs="?", choices=sorted(SCALES), default="full")
    parser.add_argument("--build", required=True, help="a build directory, such as build/release")
    parser.add_argument("--json", help="a file for the figures")
    parser.add_argument("--parts", default="life,stores", help="what to measure: life, stores or both")
    parser.add_argument("--seconds", type=float, help="of the life, instead of the scale's")
    parser.add_argument("--rate", type=float, help="operations a second of the life, instead of the scale's")
    parser.add_argument("--tier", metavar="DIR", help="a folder on a disk, which is behind the memory of the life's server")
    options = parser.parse_args()
    wrong = set(options.parts.split(",")) - {"life", "stores"}
    if wrong:
        parser.error(f"--parts={options.parts}: there are life and stores")
    return options


def main():
    options = parsed()
    scale = dict(SCALES[options.scale])
    if options.tier:
        scale.update(scale["tier"])
    scale["seconds"] = options.seconds or scale["seconds"]
    scale["rate"] = options.rate or scale["rate"]
    build = os.path.abspath(options.build)
    result = {"load_average_before": os.getloadavg()[0]}
    try:
        if "life" in options.parts:
            with tempfile.TemporaryDirectory(prefix="gannet-day-", dir=options.tier) as folder:
                result["life"] = Life(build, scale, options.tier and folder).measure()
            print(life_tables(result["life"]))
        if "stores" in options.parts:
            result["stores"] = hit_ratios(build, scale["stores"])
            print(stores_table(result["stores"]))
    except (Failed, servers.DidNotStart, FileNotFoundError) as error:
        sys.exit(f"day: {error}")
    result["load_average_after"] = os.getloadavg()[0]
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
    wrong = result.get("life", {}).get("problems", [])
    wrong += [f"{row['store']}: {row['wrong_values']} wrong values"
              for row in result.get("stores", {}).get("rows", []) if row["wrong_values"]]
    if wrong:
        sys.exit("day: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
