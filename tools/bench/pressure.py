#!/usr/bin/env python3
"""How clients fare while threads wait for cores: lost connections and late answers, beside Redis.

    pressure.py --build DIR [--minutes N] [--load N] [--clients N] [--rate N] [--json FILE]

For --minutes, --load busy loops want the cores. Meanwhile kvserver and redis-server have --clients each, the threads of
a kvload, each with a connection of its own. The clients of a store do --rate operations a second together, half of
them GETs, and check every value. redis-benchmark (-c 20 -P 16) sets keys through gannet-proxy and in Redis itself, in
turns. All run on this host, Gannet on softverbs. It needs redis-server and redis-tools.

Prints what was lost and what came late. Fails if a value was wrong or a program did not run to its end.
"""

import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import crowd  # noqa: E402
import servers  # noqa: E402

RECORDS = 10_000
LATE_US = 1_000_000  # the deadline of a call, unless a client chooses another
DEADLINE_MS = 30_000  # of kvload's operations, so that one that is late has a latency
# A batch of redis-benchmark takes seconds under load.
BENCHMARK_REQUESTS = 5_000
BENCHMARK_TIMEOUT_S = 600
SETTLE_S = 60


class Failed(Exception):
    pass


class ServerLog:
    """The lines of kvserver about connections. Some lines stand for several."""

    MANY = re.compile(r"in all (\d+) came and (\d+) went")
    CAME = re.compile(r"\] session \d+(?: resumed)?: connection \d+ ")
    WENT = re.compile(r"\] closing connection \d+ of session \d+: ([^(\n]*)")

    def __init__(self, path):
        self.path = path

    def read(self):
        """Returns how many connections came, how many went, and the reasons that are told."""
        came = went = 0
        reasons = []
        with open(self.path, encoding="utf-8") as file:
            for line in file:
                gone = self.WENT.search(line)
                if gone:
                    reasons.append(gone.group(1).strip())
                if many := self.MANY.search(line):
                    came, went = came + int(many.group(1)), went + int(many.group(2))
                else:
                    came, went = came + bool(self.CAME.search(line)), went + bool(gone)
        return came, went, reasons

    def await_only(self, left):
        """Waits until so many connections are left. The server writes a line a second at most."""
        give_up = time.monotonic() + SETTLE_S
        while True:
            came, went, reasons = self.read()
            if came - went == left:
                return went, reasons
            if time.monotonic() > give_up:
                raise Failed(f"{self.path}: {came} connections came and {went} went, but {left} should be left")
            time.sleep(0.2)


class Load:
    """A kvload that runs until it is told to end."""

    def __init__(self, build, backend, address, arguments, folder):
        self.backend = backend
        self.report = f"{folder}/{backend}.json"
        self.latencies = f"{folder}/{backend}.hgrm"
        device = ["--device=soft"] if backend == "gannet" else []
        self.command = [f"{build}/bin/kvload", f"--backend={backend}", f"--server={address}", *device, "--workload=a",
                        f"--records={RECORDS}", f"--deadline_ms={DEADLINE_MS}", f"--threads={arguments.clients}"]
        self.run_flags = ["--phase=run", f"--rate={arguments.rate}", f"--seconds={120 * arguments.minutes + 600}",
                          "--on_server_loss=wait", f"--json={self.report}", f"--percentiles={self.latencies}"]
        self.process = None

    def load_records(self):
        subprocess.run([*self.command, "--phase=load"], check=True, timeout=120, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def start(self):
        self.process = subprocess.Popen([*self.command, *self.run_flags], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)

    def end(self):
        """Returns a row of what was measured."""
        self.process.send_signal(signal.SIGINT)
        error = self.process.communicate(timeout=120)[1]
        if self.process.returncode != 128 + signal.SIGINT:
            raise Failed(f"kvload --backend={self.backend} exits with {self.process.returncode}: {error}")
        report = crowd.read_json(self.report)
        if report["wrong_values"]:
            raise Failed(f"{self.backend}: {report['wrong_values']} wrong values")
        ops = {kind: {name: report["ops"][kind][name] for name in ("p50_us", "p99_us", "p999_us", "max_us")}
               for kind in ("get", "put")}
        return {"store": self.backend, "operations": report["operations"], "rate_reached": report["rate_reached"],
                "errors": report["errors"], "late": self.late(), **ops}

    def late(self):
        """Returns how many answers came later than LATE_US after their operation was due."""
        in_time = total = 0
        with open(self.latencies, encoding="utf-8") as file:
            for line in file:
                if row := re.match(r"\s*([\d.]+)\s+[\d.]+\s+(\d+)", line):
                    total = int(row.group(2))
                    if float(row.group(1)) <= LATE_US:
                        in_time = total
        return total - in_time


def set_by_redis_benchmark(address):
    """Returns SETs a second, or the error."""
    host, _, port = address.rpartition(":")
    command = ["redis-benchmark", "-h", host, "-p", port, "-c", "20", "-P", "16", "-n", str(BENCHMARK_REQUESTS), "-r",
               str(RECORDS), "-t", "set", "--csv"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=BENCHMARK_TIMEOUT_S)
    rate = re.search(r'^"SET","([\d.]+)"', done.stdout, re.MULTILINE)
    if done.returncode != 0 or not rate or "rror" in done.stdout:
        return done.stdout.strip()
    return float(rate.group(1))


def under_load(addresses, minutes):
    """Runs redis-benchmark in turns. Returns a row for each address, and load averages."""
    rows = {store: {"runs": 0, "errors": [], "rates": []} for store in addresses}
    loads = []
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        for store, address in addresses.items():
            result = set_by_redis_benchmark(address)
            rows[store]["runs"] += 1
            rows[store]["errors" if isinstance(result, str) else "rates"].append(result)
        loads.append(os.getloadavg()[0])
    return rows, loads


def measure(arguments, folder):
    build = arguments.build
    with contextlib.ExitStack() as stack:
        log = ServerLog(f"{folder}/kvserver.log")
        gannet = stack.enter_context(servers.gannet(build, "--memory=256M", f"--log_file={log.path}"))
        redis = stack.enter_context(servers.redis())
        loads = [Load(build, "gannet", gannet, arguments, folder), Load(build, "redis", redis, arguments, folder)]
        for load in loads:
            load.load_records()
        log.await_only(0)
        proxy = stack.enter_context(servers.ready_server(
            [f"{build}/bin/gannet-proxy", "--device=soft", f"--server={gannet}", "--listen=127.0.0.1:0"]))
        went_before, reasons_before = log.read()[1:]
        stack.enter_context(crowd.busy_loops(arguments.load))
        for load in loads:
            load.start()
            stack.callback(load.process.kill)
        began = time.monotonic()
        benchmark, averages = under_load({"gannet-proxy": proxy, "redis": redis}, arguments.minutes)
        _, went, reasons = log.read()
        return {"minutes": (time.monotonic() - began) / 60, "busy_loops": arguments.load, "clients": arguments.clients,
                "load_average": [min(averages), max(averages)], "connections_lost": went - went_before,
                "reasons": reasons[len(reasons_before):], "stores": [load.end() for load in loads],
                "redis_benchmark": benchmark}


def show(result):
    low, high = result["load_average"]
    print(f"{result['minutes']:.1f} minutes, {result['busy_loops']} busy loops on {os.cpu_count()} cores (load average "
          f"{low:.0f} to {high:.0f}), {result['clients']} clients of each store")
    print(f"connections that kvserver lost: {result['connections_lost']} {result['reasons'] or ''}".rstrip())
    for row in result["stores"]:
        print(f"{row['store']:7} {row['operations']:>12,} operations ({row['rate_reached']:.1%} of the rate), "
              f"{row['late']:,} later than 1 s, errors {row['errors'] or 'none'}")
        for kind in ("get", "put"):
            times = ", ".join(f"{name.split('_')[0]} {us / 1000:.1f}" for name, us in row[kind].items())
            print(f"        {kind} ms: {times}")
    for store, row in result["redis_benchmark"].items():
        rates = sorted(row["rates"]) or [0]
        print(f"redis-benchmark -c 20 -P 16, {store}: {row['runs']} runs, {len(row['errors'])} failed, median "
              f"{rates[len(rates) // 2]:,.0f} SETs/s {row['errors'][:3] or ''}".rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--load", type=int, default=16)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(arguments, folder)
    show(result)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)


if __name__ == "__main__":
    main()
