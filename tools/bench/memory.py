"""Compares hit ratios of stores that evict. All take the same memory, by what the process has resident."""

import csv
import random
import tempfile

import servers
from footprint import resident_bytes

MIB = 1 << 20
# A run counts if the process takes as much as it should, within this share. A server's limit is
# set anew after each run that does not count.
CLOSE_ENOUGH = 0.01
# With less memory, what a server takes without any item would count most.
MEMORY_MIN = 64 * MIB
# How often a scan comes, in requests, and how many keys it asks for, once each.
SCAN_EVERY, SCAN_KEYS = 20_000, 5_000


def read_trace(path):
    """Returns (key, bytes) of each request."""
    with open(path, encoding="ascii") as file:
        return [(row["lbn"], int(row["size"])) for row in csv.DictReader(file)]


def footprint(requests):
    """Returns the bytes of all keys with their values."""
    sizes = dict(requests)
    return sum(sizes.values()) + sum(map(len, sizes))


def zipf_requests(keys, skew, scans, count, seed=1):
    """Zipf over keys whose values have 100 to 4,096 bytes, by key."""
    rng = random.Random(seed)
    sizes = [rng.randint(100, 4096) for _ in range(keys)]
    names = list(range(keys))
    rng.shuffle(names)
    weights = [1 / (rank + 1) ** skew for rank in range(keys)]
    drawn = iter(rng.choices(range(keys), weights, k=count))
    requests, next_scanned = [], keys
    for i, key in enumerate(drawn):
        requests.append((str(names[key]), sizes[key]))
        in_scan = scans and i % SCAN_EVERY >= SCAN_EVERY - SCAN_KEYS
        if in_scan:
            requests.append((str(next_scanned), 1024))
            next_scanned += 1
    return requests


def write_reads(path, requests):
    """Writes the requests as a trace of reads: a miss is followed by a PUT."""
    with open(path, "w", encoding="ascii") as file:
        file.write("version,time,op,size,lbn\n")
        for key, size in requests:
            file.write(f"1,0,28,{size},{key}\n")


def stores(build):
    """By name: start(limit), which starts a server that may take so many bytes."""
    def redis(policy):
        return lambda limit: servers.tcp_server(
            lambda port: ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
                          "--appendonly", "no", "--maxmemory", str(limit),
                          "--maxmemory-policy", policy])
    return {
        "gannet": ("gannet", lambda limit: servers.gannet(build, f"--memory={limit}",
                                                          "--on_full=evict")),
        "redis allkeys-lru": ("redis", redis("allkeys-lru")),
        "redis allkeys-lfu": ("redis", redis("allkeys-lfu")),
        "memcached": ("memcached", lambda limit: servers.memcached(max(limit // MIB, 1))),
    }


def one_run(bench, backend, start, limit, trace):
    """Returns the figures of a run, and what the server's process had resident at the end."""
    with start(limit) as address:
        # The trace has values that are too short to be verified.
        report = bench.kvload(address, f"--trace={trace}", "--depth=1", "--verify=false",
                              backend=backend)
        return {"hit_ratio": report["hit_ratio"], "put": report["ops"].get("put")}, resident_bytes()


def at_equal_memory(say, name, run, memory, runs_max):
    """Sets the store's own limit such that its process takes `memory` bytes.

    run(limit) returns figures, which have a hit ratio, and the bytes that the process took.
    """
    limit = memory
    best = None
    for _ in range(runs_max):
        figures, resident = run(limit)
        say(f"{name}: limit {limit / MIB:.0f} MiB, resident {resident / MIB:.0f}, "
            f"hits {figures['hit_ratio']:.4f}")
        row = {"store": name, "limit": limit, "resident": resident, **figures}
        if best is None or abs(resident - memory) < abs(best["resident"] - memory):
            best = row
        if abs(resident - memory) <= CLOSE_ENOUGH * memory:
            break
        # A store may take twice its limit, and then the difference alone would be more than the limit.
        limit = max(limit + memory - resident, limit * memory // resident)
    return best


def workloads(scale):
    """By name: the requests, the file they are in if there is one, and the memories as shares of the footprint."""
    named = {}
    if scale["trace"] is not None:
        named["trace"] = (read_trace(scale["trace"]), scale["trace"], scale["trace_shares"])
    for skew in scale["skews"]:
        for scans in [False, True]:
            requests = zipf_requests(scale["keys"], skew, scans, scale["requests"])
            named[f"zipf {skew}{', scans' if scans else ''}"] = (requests, None, scale["zipf_shares"])
    return named


def measure(bench, scale):
    rows = []
    for workload, (requests, path, shares) in workloads(scale).items():
        with tempfile.NamedTemporaryFile(suffix=".csv") as made:
            if path is None:
                write_reads(made.name, requests)
            for share in shares:
                memory = max(int(footprint(requests) * share), MEMORY_MIN)
                bench.say(f"{workload}, {share:.0%} of the footprint: {memory / MIB:.0f} MiB")
                for name, (backend, start) in stores(bench.build).items():
                    trace = path or made.name
                    row = at_equal_memory(
                        bench.say, name,
                        lambda limit, of=(backend, start, trace): one_run(bench, *of[:2], limit, of[2]),
                        memory, scale["runs"])
                    rows.append({"workload": workload, "share": share, "memory": memory, **row})
    return rows
