"""PUTs of a server that keeps its items on a disk, beside Redis with its append-only file on the same disk.

The settings take turns, run by run, and the best run of each counts, because the machine's other work
can only slow a run down. Before each run the system writes to the disk what former runs left. Also measures how fast a restart restores items,
and GETs while snapshots are written.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import time

import servers

VALUE_SIZE = 100


def redis(folder, fsync):
    save = ["--appendonly", "no"] if fsync is None else ["--appendonly", "yes", "--appendfsync", fsync]
    return servers.tcp_server(
        lambda port: ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
                      "--dir", folder, *save])


def gannet(bench, scale, folder, sync):
    data = [] if sync is None else [f"--data={folder}", f"--sync={sync}"]
    return servers.gannet(bench.build, f"--memory={scale['memory']}", *data)


def settings(bench, scale):
    """By name: backend, start(folder)."""
    return {
        "gannet, no disk": ("gannet", lambda folder: gannet(bench, scale, folder, None)),
        "gannet, none": ("gannet", lambda folder: gannet(bench, scale, folder, "none")),
        "gannet, interval": ("gannet", lambda folder: gannet(bench, scale, folder, "interval")),
        "gannet, always": ("gannet", lambda folder: gannet(bench, scale, folder, "always")),
        "redis, no disk": ("redis", lambda folder: redis(folder, None)),
        "redis, everysec": ("redis", lambda folder: redis(folder, "everysec")),
        "redis, always": ("redis", lambda folder: redis(folder, "always")),
    }


@contextlib.contextmanager
def folder_on_disk():
    """Makes a directory where TMPDIR says, which must be on the disk that is to be measured."""
    folder = tempfile.mkdtemp(prefix="gannet-durability-", dir=os.environ.get("TMPDIR"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def puts(bench, scale):
    rows = []
    records = [f"--records={scale['records']}", f"--value_size={VALUE_SIZE}"]
    with contextlib.ExitStack() as stack:
        running = {}
        for name, (backend, start) in settings(bench, scale).items():
            address = stack.enter_context(start(stack.enter_context(folder_on_disk())))
            bench.kvload(address, "--phase=load", "--depth=32", *records, backend=backend)
            running[name] = (backend, address)
        for workload in "aw":
            for clients in scale["clients"]:
                bench.say(f"workload {workload}, {clients} clients")
                operations = max(scale["operations_each"] * clients, scale["operations_min"])
                flags = [f"--workload={workload}", f"--threads={clients}", f"--operations={operations}"]
                rows += best_runs(bench, scale["runs"], running, [*records, *flags])
    return rows


def best_runs(bench, runs, running, flags):
    reports = {name: [] for name in running}
    for _ in range(runs):
        for name, (backend, address) in running.items():
            os.sync()
            reports[name].append(bench.kvload(address, "--phase=run", "--depth=32", *flags,
                                              "--deadline_ms=60000", backend=backend))
    return [row_of(name, max(of, key=lambda report: report["ops_per_second"]))
            for name, of in reports.items()]


def row_of(name, report):
    put, operations = report["ops"]["put"], report["operations"]
    return {"setting": name, "workload": report["workload"], "clients": report["threads"],
            "ops_per_second": report["ops_per_second"],
            "put_p50_us": put["p50_us"], "put_p99_us": put["p99_us"],
            "client_cpu_seconds_per_million": report["client_cpu_us"] / operations,
            "server_cpu_seconds_per_million": report["server_cpu_us"] / operations}


def restore(bench, scale):
    """Returns the seconds of a start that finds so many items, less those of one that finds none."""
    with folder_on_disk() as folder:
        def start():
            began = time.monotonic()
            with gannet(bench, {"memory": scale["restore_memory"]}, folder, "interval") as address:
                return time.monotonic() - began, fill(address) if not filled else None

        def fill(address):
            bench.kvload(address, "--phase=load", "--depth=32", f"--value_size={VALUE_SIZE}",
                         f"--records={scale['restore_items']}")

        filled = False
        empty_seconds, _ = start()
        filled = True
        seconds = min(start()[0] for _ in range(scale["runs"]))
    return {"items": scale["restore_items"], "seconds": seconds, "empty_seconds": empty_seconds,
            "items_per_second": scale["restore_items"] / max(seconds - empty_seconds, 1e-3)}


@contextlib.contextmanager
def snapshots(bench, address):
    """Has a server write one snapshot after the other. Gives a list, and adds the seconds of each snapshot to it."""
    seconds, ended = [], threading.Event()

    def write():
        while not ended.is_set():
            began = time.monotonic()
            subprocess.run([f"{bench.build}/bin/kvcli", f"--server={address}", "--device=soft", "snapshot"],
                           check=True, stdout=subprocess.DEVNULL)
            seconds.append(time.monotonic() - began)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield seconds
    finally:
        ended.set()
        thread.join()


def gets(bench, scale):
    """GETs of one client, without and with snapshots that are written meanwhile, in turns."""
    flags = [f"--records={scale['restore_items']}", f"--value_size={VALUE_SIZE}", "--depth=1"]
    rows = []
    with folder_on_disk() as folder, \
            gannet(bench, {"memory": scale["restore_memory"]}, folder, "interval") as address:
        bench.kvload(address, "--phase=load", *flags, "--depth=32")
        for _ in range(scale["runs"]):
            for writes in [False, True]:
                with snapshots(bench, address) if writes else contextlib.nullcontext([]) as seconds:
                    report = bench.kvload(address, "--phase=run", "--workload=c", *flags,
                                          f"--seconds={scale['gets_seconds']}")
                get = report["ops"]["get"]
                rows.append({"snapshots": writes, "ops_per_second": report["ops_per_second"],
                             "p50_us": get["p50_us"], "p99_us": get["p99_us"],
                             "reads_per_get": report["verbs"]["get"]["reads_per_op"], "snapshot_seconds": seconds})
    return rows


def measure(bench, scale):
    return {"gets": gets(bench, scale), "puts": puts(bench, scale), "restore": restore(bench, scale), "runs": scale["runs"]}
