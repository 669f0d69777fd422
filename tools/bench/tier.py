"""What a disk behind the memory gives and costs: hits, reads of the disk, writes and times of servers whose memory has a
tenth of the items, beside memcached with extstore on the same disk. A miss is followed by a PUT."""

import contextlib
import os
import random
import socket
import tempfile
import time
import typing

import room
import servers

MIB = 1 << 20
SKEW = 0.99
# Of the items' bytes. What the server itself takes comes on top.
MEMORY_SHARE = 0.1
# Records have headers, and the segment that is being taken again has none.
ROOM_OF_ALL = 1.3
# What a process may take beside its items: its code, its buffers, and pages of the file that it writes.
PROCESS_BYTES = 192 * MIB
# The disks' smallest circle: sixteen segments.
TIER_MIN = 16 * 64 * MIB


def write_reads(path, keys, value_bytes, count, seed):
    """Writes a trace of GETs by Zipf's law. The same keys are popular, whatever the seed."""
    names = list(range(keys))
    random.Random(0).shuffle(names)
    weights = [1 / (rank + 1) ** SKEW for rank in range(keys)]
    with open(path, "w", encoding="ascii") as file:
        file.write("version,time,op,size,lbn\n")
        for name in random.Random(seed).choices(names, weights, k=count):
            file.write(f"1,0,28,{value_bytes},{name}\n")


# --- one limit for the memory of each process, with the pages of files that it has in memory

def make_group(root, file, limit):
    """Returns the folder of a new cgroup, or None if this user can make none there."""
    folder = f"{root}/gannet-bench-{os.getpid()}"
    # The first version of cgroups has no group at its root, but folders for what they limit.
    if not os.path.exists(f"{root}/cgroup.procs"):
        return None
    try:
        os.mkdir(folder)
        with open(f"{folder}/{file}", "r+", encoding="ascii") as limits:
            limits.write(str(limit))
    except OSError:
        with contextlib.suppress(OSError):
            os.rmdir(folder)
        return None
    return folder


@contextlib.contextmanager
def memory_group(limit):
    """Makes a cgroup whose processes take at most so many bytes. Gives its folder; None: this user can make none."""
    folder = (make_group("/sys/fs/cgroup", "memory.max", limit) or
              make_group("/sys/fs/cgroup/memory", "memory.limit_in_bytes", limit))
    try:
        yield folder
    finally:
        # The last process has ended, but maybe not yet for the kernel.
        for _ in range(100 if folder is not None else 0):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
                break
            time.sleep(0.1)


def within(folder, command):
    """Returns a command that runs `command` in a cgroup."""
    if folder is None:
        return command
    return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', folder, *command]


# --- the stores

def gannet(build, folder, memory, path, disk):
    flags = [f"--memory={memory}", "--on_full=evict"]
    if disk is not None:
        flags += [f"--tier={path}", f"--tier_bytes={disk}"]
    return servers.ready_server(within(folder, [f"{build}/bin/kvserver", "--listen=127.0.0.1:0", "--device=soft", *flags]))


def memcached(folder, memory, path, disk, threads):
    user = ["-u", "root"] if os.geteuid() == 0 else []
    options = f"ext_path={path}/extstore:{disk // MIB}m,ext_threads={threads}"
    return servers.tcp_server(lambda port: within(folder, [
        "memcached", "-l", "127.0.0.1", "-p", port, "-t", "1", "-m", str(memory // MIB), "-I", "2m", "-o", options, *user]))


def memcached_stats(address):
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(b"stats\r\n")
        said = b""
        while not said.endswith(b"END\r\n"):
            said += connection.recv(1 << 16)
    return dict(line.split()[1:3] for line in said.decode().splitlines() if line.startswith("STAT "))


def disk_counts(bench, store, address):
    """Returns how many values a server has read from its disk and written to it so far."""
    if store.disk is None:
        return {"reads": 0, "written": 0}
    if store.backend == "memcached":
        stats = memcached_stats(address)
        return {"reads": int(stats["get_extstore"]), "written": int(stats["extstore_objects_written"])}
    stats = room.stats_of(bench, address)
    return {"reads": stats["tier_reads"], "written": stats["tier_written"]}


class Store(typing.NamedTuple):
    backend: str
    memory: int
    disk: int | None  # its bytes
    threads: int = 0  # of extstore, that read the disk

    def start(self, bench, folder, path):
        if self.backend == "memcached":
            return memcached(folder, self.memory, path, self.disk, self.threads)
        return gannet(bench.build, folder, self.memory, path, self.disk)


def stores(scale):
    """By name."""
    items = scale["set_bytes"]
    memory = int(items * MEMORY_SHARE)
    of_all, of_half = max(int(items * ROOM_OF_ALL), TIER_MIN), max(items // 2, TIER_MIN)
    found = {"all in memory": Store("gannet", int(items * ROOM_OF_ALL), None),
             "no disk": Store("gannet", memory, None), "tier of all": Store("gannet", memory, of_all)}
    if of_half < of_all:
        found["tier of half"] = Store("gannet", memory, of_half)
    for threads in scale["extstore_threads"]:
        found[f"extstore of all, {threads} threads"] = Store("memcached", memory, of_all, threads)
    return found


# --- a run

def run(bench, store, address, trace, depth):
    return bench.kvload(address, f"--trace={trace}", f"--depth={depth}", "--verify=false", "--deadline_ms=60000",
                        backend=store.backend)


def figures_of(bench, store, traces, scale):
    """The first trace fills the store, the second is measured."""
    with tempfile.TemporaryDirectory(prefix="gannet-tier-", dir=scale["folder"]) as path, \
            memory_group(store.memory + PROCESS_BYTES) as group, store.start(bench, group, path) as address:
        run(bench, store, address, traces[0], scale["depth"])
        before = disk_counts(bench, store, address)
        report = run(bench, store, address, traces[1], scale["depth"])
        after = disk_counts(bench, store, address)
    get = report["ops"]["get"]
    return {"limited": group is not None, "hit_ratio": report["hit_ratio"], "p50_us": get["p50_us"], "p99_us": get["p99_us"],
            "gets_per_second": get["count"] / report["seconds"],
            "disk_reads_per_get": (after["reads"] - before["reads"]) / get["count"], "written": after["written"]}


def measure(bench, scale):
    rows = []
    for value_bytes in scale["values"]:
        keys = scale["set_bytes"] // value_bytes
        with tempfile.TemporaryDirectory(prefix="gannet-tier-") as folder:
            traces = [f"{folder}/{seed}.csv" for seed in (1, 2)]
            for seed, path in enumerate(traces, 1):
                write_reads(path, keys, value_bytes, scale["gets_of_each_key"] * keys, seed)
            for name, store in stores(scale).items():
                row = {"value_bytes": value_bytes, "keys": keys, "store": name, **figures_of(bench, store, traces, scale)}
                bench.say(str(row))
                rows.append(row)
    return {"set_bytes": scale["set_bytes"], "memory_share": MEMORY_SHARE, "depth": scale["depth"], "rows": rows}
