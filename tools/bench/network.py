#!/usr/bin/env python3
"""Measures softverbs between two network namespaces, beside bare TCP, Redis and memcached in the same run.

    two_hosts.py network.py --build DIR --json FILE [--quick]

Every measurement is a process in the one namespace against a process in the other. The rounds take turns, so that the
load of the machine is the same for all. Prints tables of medians. Exits with 1 if a part fails.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "../../softverbs/tests/support"))
import servers  # noqa: E402
import two_hosts  # noqa: E402

LIMIT_S = 120
TRIES = 100
UNITS = {"us": 1, "ms": 1e3, "ns": 1e-3, "KB": 1e-6, "MB": 1e-3, "GB": 1, "bytes": 1e-9}
WIRE = {"SEND, 64 B, one way": ("ib_send_lat", 64), "READ, 64 B, there and back": ("ib_read_lat", 64),
        "SENDs, 64 KiB": ("ib_send_bw", 65536), "WRITEs, 64 KiB": ("ib_write_bw", 65536),
        "READs, 64 KiB": ("ib_read_bw", 65536)}
TCP_LATENCY, TCP_STREAM = "TCP, 64 B, one way", "TCP, 64 KiB"


class Failed(Exception):
    pass


def on(side):
    """Returns the environment of a softverbs process on host A or B."""
    return {**os.environ, "SOFTVERBS_NET": two_hosts.ADDRESSES[side]}


def client(command, environment=None):
    """Runs a command on B and returns its output. Tries again while the server does not listen yet."""
    for _ in range(TRIES):
        made = subprocess.run([*two_hosts.enter_b(), *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, env=environment, timeout=LIMIT_S, check=False)
        if made.returncode == 0:
            return made.stdout
        time.sleep(0.05)
    raise Failed(f"{' '.join(command)}: {made.stdout[-2000:]}")


def beside(server, command, environments=(None, None)):
    """Runs a server on A and a client on B, and returns the client's output."""
    process = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environments[0])
    try:
        return client(command, environments[1])
    finally:
        servers.stop(process)


def qperf(test, size, seconds):
    port = str(servers.free_port())
    output = beside(["qperf", "-lp", port],
                    ["qperf", "-lp", port, two_hosts.ADDRESSES["A"], "-t", str(seconds), "-m", str(size), test])
    number, unit = re.search(r"(?:latency|bw)\s+=\s+([0-9.]+) (\w+)", output).groups()
    return float(number) * UNITS[unit]


def perftest(build, tool, size, iterations):
    """Returns microseconds, typically, or GB/s."""
    port = str(servers.free_port())
    command = [f"{build}/bin/softverbs-run", tool, "-F", "-s", str(size), "-p", port, "-n", str(iterations)]
    output = beside(command, [*command, two_hosts.ADDRESSES["A"]], (on("A"), on("B")))
    fields = re.search(rf"^ *{size} .*$", output, re.MULTILINE).group(0).split()
    return float(fields[4]) if tool.endswith("_lat") else float(fields[3]) * (1 << 20) / 1e9


def wire(build, scale):
    rounds = []
    for _ in range(scale["rounds"]):
        row = {TCP_LATENCY: qperf("tcp_lat", 64, scale["seconds"]),
               TCP_STREAM: qperf("tcp_bw", 65536, scale["seconds"])}
        for name, (tool, size) in WIRE.items():
            iterations = scale["latency_iterations"] if tool.endswith("_lat") else scale["stream_iterations"]
            row[name] = perftest(build, tool, size, iterations)
        rounds.append(row)
    return rounds


def store(build, name):
    """Returns the server's command, what its address is, and its environment."""
    host, port = two_hosts.ADDRESSES["A"], str(servers.free_port())
    root = ["-u", "root"] if os.geteuid() == 0 else []
    command = {"gannet": [f"{build}/bin/kvserver", "--device=soft", f"--listen={host}:{port}", "--memory=256M"],
               "redis": ["redis-server", "--port", port, "--bind", host, "--protected-mode", "no", "--save", "",
                         "--appendonly", "no"],
               "memcached": ["memcached", "-l", host, "-p", port, "-t", "1", "-m", "256", *root]}[name]
    return command, f"{host}:{port}"


def load(build, name, address, *flags):
    device = ["--device=soft"] if name == "gannet" else []
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        client([f"{build}/bin/kvload", f"--backend={name}", f"--server={address}", *device, f"--json={report.name}",
                *flags], on("B"))
        return json.load(report)["ops_per_second"]


def stores(build, scale):
    rows = []
    for _ in range(scale["rounds"]):
        for name in ("gannet", "redis", "memcached"):
            command, address = store(build, name)
            server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=on("A"))
            try:
                for depth in (1, 32):
                    common = [f"--depth={depth}", f"--records={scale['records']}"]
                    row = {"store": name, "depth": depth}
                    load(build, name, address, "--phase=load", *common)
                    for what, workload in (("PUT", "w"), ("GET", "c")):
                        row[what] = load(build, name, address, "--phase=run", f"--workload={workload}",
                                         f"--operations={scale['operations'][depth]}", *common)
                    rows.append(row)
            finally:
                servers.stop(server)
    return rows


def tables(result):
    lines = ["| between two namespaces | median | beside bare TCP |", "| --- | --- | --- |"]
    median = {name: statistics.median(row[name] for row in result["wire"]) for name in result["wire"][0]}
    for name, value in median.items():
        slow = "way" in name or "back" in name
        base = median[TCP_LATENCY] * (2 if "back" in name else 1) if slow else median[TCP_STREAM]
        lines.append(f"| {name} | {value:.2f} {'us' if slow else 'GB/s'} | {value / base:.2f} |")
    lines += ["", "| operations/s | in flight | Gannet | Redis | memcached |", "| --- | --- | --- | --- | --- |"]
    for what in ("GET", "PUT"):
        for depth in (1, 32):
            cells = [statistics.median(row[what] for row in result["stores"]
                                       if (row["store"], row["depth"]) == (name, depth))
                     for name in ("gannet", "redis", "memcached")]
            lines.append(f"| {what} | {depth} | " + " | ".join(f"{cell:,.0f}" for cell in cells) + " |")
    return "\n".join(lines)


SCALES = {False: {"rounds": 5, "seconds": 2, "latency_iterations": 50_000, "stream_iterations": 20_000,
                  "records": 20_000, "operations": {1: 50_000, 32: 1_000_000}},
          True: {"rounds": 1, "seconds": 1, "latency_iterations": 500, "stream_iterations": 200,
                 "records": 500, "operations": {1: 500, 32: 1000}}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--json", required=True)
    parser.add_argument("--quick", action="store_true", help="so few operations that the times mean nothing")
    options = parser.parse_args()
    build, scale = os.path.abspath(options.build), SCALES[options.quick]
    try:
        result = {"load_average_before": os.getloadavg()[0], "wire": wire(build, scale),
                  "stores": stores(build, scale), "load_average_after": os.getloadavg()[0]}
    except Failed as error:
        sys.exit(f"network: {error}")
    with open(options.json, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)
        file.write("\n")
    print(tables(result))


if __name__ == "__main__":
    main()
