"""Measures many clients on few cores: their throughput together, and their CPU time while idle."""

import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time

import servers

RECORDS = 50_000
VALUE_SIZE = 100
# Time before the run, for the processes to start and connect at the same time.
LEAD_SECONDS, LEAD_SECONDS_EACH = 0.5, 0.04
WARM_UP_SECONDS_EACH = 0.06  # more time for a process that first reads all records
WORKLOAD_SECONDS = 0.3  # of the workload before the run, so that clients have made all connections
LATE = "that time had passed"
TRIES = 4


class Failed(Exception):
    pass


class Crowd:
    def __init__(self, build, scale, say):
        self.kvload = f"{build}/bin/kvload"
        self.build = build
        self.scale = scale
        self.say = say

    def command(self, backend, address, *flags):
        device = ["--device=soft"] if backend == "gannet" else []
        return [self.kvload, f"--backend={backend}", f"--server={address}", *device,
                f"--records={RECORDS}", f"--value_size={VALUE_SIZE}", *flags]

    def load(self, backend, address):
        subprocess.run(self.command(backend, address, "--phase=load", "--depth=32"), check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)

    def together(self, backend, address, count, flags):
        """Runs `count` kvload processes at the same time, and returns their reports."""
        lead = LEAD_SECONDS + LEAD_SECONDS_EACH * count + WORKLOAD_SECONDS
        if "--warm_up" in flags:
            lead += WARM_UP_SECONDS_EACH * count
        for _ in range(TRIES):
            reports = self.try_together(backend, address, count, flags, time.time() + lead)
            if reports is not None:
                return reports
            lead *= 2
        raise Failed(f"{count} kvload processes were not ready within {lead:.0f} s")

    def try_together(self, backend, address, count, flags, start_at):
        with tempfile.TemporaryDirectory() as folder:
            processes = []
            for i in range(count):
                command = self.command(
                    backend, address, "--phase=run", f"--seconds={self.scale['seconds']}",
                    f"--start_at={start_at}", f"--seed={1000 * i + 1}", f"--json={folder}/{i}", *flags)
                processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                                  stderr=subprocess.PIPE, text=True))
            errors = [process.communicate(timeout=300)[1] for process in processes]
            if any(LATE in error for error in errors):
                return None
            for process, error in zip(processes, errors):
                if process.returncode != 0:
                    raise Failed(f"kvload: {error[-2000:]}")
            return [read_json(f"{folder}/{i}") for i in range(count)]

    def row(self, backend, address, mode, count, workload, depth):
        flags = [f"--workload={workload}", f"--depth={depth}",
                 f"--warmup_seconds={WORKLOAD_SECONDS}"]
        if backend == "gannet":  # clients of other stores have nothing to remember
            flags.append("--warm_up")
        if mode == "threads":
            reports = self.together(backend, address, 1, [*flags, f"--threads={count}"])
        else:
            reports = self.together(backend, address, count, flags)
        row = {"backend": backend, "mode": mode, "clients": count, "workload": workload,
               "depth": depth, "ops_per_second": sum(r["ops_per_second"] for r in reports)}
        for kind in ["get", "put"]:
            ops = [r["ops"][kind] for r in reports if r["ops"].get(kind, {}).get("count")]
            if ops:
                row[kind] = {"p50_us": statistics.median(op["p50_us"] for op in ops),
                             "p99_us": max(op["p99_us"] for op in ops),
                             "max_us": max(op["max_us"] for op in ops)}
        return row

    @contextlib.contextmanager
    def loaded(self, backend):
        start = {"gannet": lambda: servers.gannet(self.build, "--memory=256M"),
                 "redis": servers.redis, "memcached": lambda: servers.memcached(256)}[backend]
        with start() as address:
            self.load(backend, address)
            yield address

    def totals(self):
        rows = []
        for backend in self.scale["backends"]:
            self.say(f"crowd: {backend}")
            with self.loaded(backend) as address:
                for mode in self.scale["modes"]:
                    for workload in self.scale["workloads"]:
                        for depth in self.scale["depths"]:
                            for count in self.scale["clients"]:
                                rows.append(
                                    self.row(backend, address, mode, count, workload, depth))
        return rows

    def neighbours(self):
        """Measures one client beside several numbers of busy loops."""
        rows = []
        for backend in self.scale["backends"]:
            with self.loaded(backend) as address:
                for busy in self.scale["neighbours"]:
                    with busy_loops(busy):
                        for depth in self.scale["depths"]:
                            row = self.row(backend, address, "processes", 1, "b", depth)
                            rows.append({**row, "neighbours": busy})
        return rows

    def idle(self):
        """Measures the CPU time of a server and its idle clients, and of a client with 1,000 GETs a second."""
        clients, seconds = self.scale["idle_clients"], self.scale["idle_seconds"]
        with servers.gannet(self.build, "--memory=256M") as address:
            self.load("gannet", address)
            # Each kvcli connects and then waits for commands.
            command = [f"{self.build}/bin/kvcli", f"--server={address}", "--device=soft"]
            with processes_of([command] * clients, stdin=subprocess.PIPE) as waiting:
                time.sleep(LEAD_SECONDS + LEAD_SECONDS_EACH * clients * 2)
                pids = [process.pid for process in waiting] + [self.server_pid(address)]
                before = sum(map(cpu_seconds, pids))
                time.sleep(seconds)
                used = sum(map(cpu_seconds, pids)) - before
            steady = self.together("gannet", address, 1,
                                   ["--workload=c", "--depth=1", "--target_ops=1000"])[0]
        return {"clients": clients, "idle_core_share": used / seconds,
                "steady_gets_per_second": steady["ops_per_second"],
                "steady_core_share": steady["client_cpu_us"] / 1e6 / steady["seconds"],
                "steady_p99_us": steady["ops"]["get"]["p99_us"],
                "sleeping_core_share": sleeping_core_share(1000, seconds)}

    @staticmethod
    def server_pid(address):
        """Returns the process id of the kvserver child, because servers.py gives only its address."""
        for pid in children():
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if b"kvserver" in file.read():
                        return pid
        raise Failed(f"no kvserver at {address}")


def sleeping_core_share(per_second, seconds):
    """Returns the share of a core of a loop that only sleeps, `per_second` times a second."""
    before, began = time.process_time(), time.monotonic()
    for i in range(1, int(per_second * seconds)):
        time.sleep(max(0, began + i / per_second - time.monotonic()))
    return (time.process_time() - before) / (time.monotonic() - began)


def children():
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="utf-8") as file:
        return [int(pid) for pid in file.read().split()]


def cpu_seconds(pid):
    """Returns the CPU time of a process's threads so far, to the nanosecond; see schedstat in proc(5)."""
    used = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="utf-8") as file:
            used += int(file.read().split()[0])
    return used / 1e9


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


@contextlib.contextmanager
def processes_of(commands, stdin=None):
    running = [subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL) for command in commands]
    try:
        yield running
    finally:
        for process in running:
            process.kill()
        for process in running:
            process.wait()


def busy_loops(count):
    return processes_of([["sh", "-c", "while :; do :; done"]] * count)


def measure(bench, scale):
    crowd = Crowd(bench.build, scale, bench.say)
    return {"seconds": scale["seconds"], "totals": crowd.totals(),
            "neighbours": crowd.neighbours(), "idle": crowd.idle()}
