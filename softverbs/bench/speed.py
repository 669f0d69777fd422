#!/usr/bin/env python3
"""Measures READ, WRITE and SEND of 64 B to 1 MiB on softverbs, beside a memcpy of as many bytes, and prints the tables in Markdown.

    speed.py [--softverbs-run PROGRAM] [--kernel-device NAME] [--rounds N] [--fewer N] [--quick] [--json FILE]

It runs perftest (Debian's package), polled and by events, both ends on this host. With --kernel-device, as rxe0, the same runs on a
device of the kernel, in turns with softverbs. --fewer divides the iterations, for an emulated machine. --quick measures a few sizes with few iterations: it shows that the script runs. These
are no figures of an RDMA NIC: softverbs copies with the processor.

A round takes at most five minutes. On a machine that has other work some runs take long; where no round had the time for one, the
table has a dash. The load average is printed beside, before and after: on a quiet machine it is below 1 before.
"""

import argparse
import datetime
import errno
import json
import os
import platform
import random
import re
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 120
ROUND_LIMIT_S = 300  # what a round has not measured then, it leaves out
SOFTVERBS = "softverbs0"
QUICK = 10_000  # times fewer iterations
SIZES = [64, 512, 4096, 32768, 262144, 1 << 20]
# (heading, tool, flags). perftest has no WRITE by events: its target does not take part.
RUNS = {
    "latency": [("READ", "ib_read_lat", []), ("READ, events", "ib_read_lat", ["-e"]), ("WRITE", "ib_write_lat", []),
                ("SEND", "ib_send_lat", []), ("SEND, events", "ib_send_lat", ["-e"])],
    "bandwidth": [("READ", "ib_read_bw", []), ("READ, events", "ib_read_bw", ["-e"]), ("WRITE", "ib_write_bw", []),
                  ("SEND", "ib_send_bw", []), ("SEND, events", "ib_send_bw", ["-e"])],
}
TITLES = {"latency": "Latency, microseconds (the typical one; READ there and back, WRITE and SEND one way)",
          "bandwidth": "Bandwidth, GB/s (many in flight)"}


class Failed(Exception):
    pass


def free_port():
    """Returns a port that nobody listens at. It is below those that the system gives to connections, so that no connection
    gets it before the server has it."""
    while True:
        port = random.randrange(10000, 32768)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                continue
        return str(port)


def listens(port):
    """Returns whether somebody listens at that TCP port of this host."""
    ending = f":{int(port):04X}"
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(name, encoding="ascii") as lines:
                words = [line.split() for line in lines]
        except FileNotFoundError:  # no IPv6
            continue
        if any(line[1].endswith(ending) and line[3] == "0A" for line in words[1:]):
            return True
    return False


def stop(process):
    process.kill()
    process.wait()


def perftest(prefix, device, tool, size, flags, iterations, end):
    """Returns microseconds, or GB/s, or None if the clock reaches `end` before."""
    port = free_port()
    command = [*prefix, tool, "-d", device, "-F", "-s", str(size), "-n", str(iterations), "-p", port, *flags]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        # A client that comes before the server listens fails.
        end = min(end, time.monotonic() + LIMIT_S)
        while not listens(port) and server.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        for _ in range(3):
            try:
                client = subprocess.run([*command, "127.0.0.1"], capture_output=True, text=True,
                                        timeout=max(0, end - time.monotonic()), check=False)
            except subprocess.TimeoutExpired:
                return None
            line = re.search(rf"^ *{size} .*$", client.stdout, re.MULTILINE)
            if client.returncode == 0 and line:
                fields = line.group(0).split()
                return float(fields[4]) if tool.endswith("_lat") else float(fields[3]) * (1 << 20) / 1e9
            if server.poll() is not None:
                break
        raise Failed(f"{' '.join(command)}: {client.stdout[-500:]}{client.stderr[-500:]}")
    finally:
        stop(server)


def measure_memcpy(program, sizes, quick):
    times = {}
    for size in sizes:
        copies = 10 if quick else max(20, min(100_000, (64 << 20) // size))
        done = subprocess.run([program, str(size), str(copies)], capture_output=True, text=True, timeout=LIMIT_S, check=True)
        times[size] = float(done.stdout)
    return {"latency": times, "bandwidth": {size: size / time / 1e3 for size, time in times.items()}}


def iterations_of(tool, size, device):
    # ib_write_lat polls memory at both ends. On two cores softverbs' own thread then gets a turn in milliseconds, if others want the cores.
    most = 1_000 if tool == "ib_write_lat" else 5_000 if tool.endswith("_lat") else 50_000
    iterations = min(most, (1 << 31) // size)
    return iterations if device == SOFTVERBS else iterations // 20


def measure(devices, sizes, rounds, fewer):
    """Returns the best of the rounds, by kind, heading, device and size. The devices take turns."""
    best = {kind: {heading: {device: {} for device in devices} for heading, _, _ in runs} for kind, runs in RUNS.items()}
    for number in range(rounds):
        begin = time.monotonic()
        left_out = 0
        for kind, runs in RUNS.items():
            better = min if kind == "latency" else max
            for heading, tool, flags in runs:
                for size in sizes:
                    for device, prefix in devices.items():
                        iterations = max(20, iterations_of(tool, size, device) // fewer)
                        figure = perftest(prefix, device, tool, size, flags, iterations, begin + ROUND_LIMIT_S)
                        so_far = best[kind][heading][device]
                        if figure is None:
                            left_out += 1
                        else:
                            so_far[size] = better(figure, so_far.get(size, figure))
        took = f"round {number + 1} of {rounds} took {time.monotonic() - begin:.0f} s"
        print(f"{took}, and had no time for {left_out} runs" if left_out else took, file=sys.stderr)
    return best


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as about:
        model = re.search(r"model name\s*: (.*)", about.read())
    return f"{model.group(1) if model else platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}"


def version_of(prefix):
    done = subprocess.run([*prefix, "--version"], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    return done.stdout.strip()


def commit():
    done = subprocess.run(["git", "-C", HERE, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return done.stdout.strip() or "unknown"


def name_of(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"


def short(figure):
    if figure is None:
        return "-"
    return f"{figure:.3f}" if figure < 0.1 else f"{figure:.2f}" if figure < 10 else f"{figure:,.1f}" if figure < 1000 else f"{figure:,.0f}"


def tables(result):
    lines = [f"{result['softverbs']}, commit {result['commit']}, {result['date']}: {result['machine']}; perftest"
             f" {result['perftest']}, the best of {result['rounds']} rounds, load average {result['load']}."]
    for kind, runs in RUNS.items():
        columns = [("memcpy", result["memcpy"][kind])]
        for heading, _, _ in runs:
            columns += [(heading if len(result["devices"]) == 1 else f"{heading}: {device}", result["measured"][kind][heading][device])
                        for device in result["devices"]]
        lines += ["", f"**{TITLES[kind]}**", "", "| | " + " | ".join(heading for heading, _ in columns) + " |", "|---" * (len(columns) + 1) + "|"]
        for size in result["sizes"]:
            lines.append(f"| {name_of(size)} | " + " | ".join(short(figures.get(size)) for _, figures in columns) + " |")
    return "\n".join(lines)


def perftest_version():
    """Returns the version of Debian's package: the tools know only that of their protocol."""
    done = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", "perftest"], capture_output=True, text=True, timeout=LIMIT_S,
                          check=False)
    return done.stdout.strip() or "of an unknown version"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--softverbs-run", default="softverbs-run", metavar="PROGRAM")
    parser.add_argument("--kernel-device", metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--fewer", type=int, default=1, metavar="N")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    prefix = [options.softverbs_run]
    devices = {SOFTVERBS: prefix}
    if options.kernel_device:
        devices[options.kernel_device] = []
    sizes = [64, 1 << 20] if options.quick else SIZES
    rounds = 1 if options.quick else options.rounds
    result = {"softverbs": version_of(prefix), "commit": commit(), "perftest": perftest_version(), "machine": machine(),
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
              "sizes": sizes, "devices": list(devices), "rounds": rounds, "load": f"{os.getloadavg()[0]:.1f} before"}
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "memcpy")
        subprocess.run(["cc", "-O2", "-o", program, os.path.join(HERE, "memcpy.c")], timeout=LIMIT_S, check=True)
        result["memcpy"] = measure_memcpy(program, sizes, options.quick)
    result["measured"] = measure(devices, sizes, rounds, QUICK if options.quick else options.fewer)
    result["load"] += f" and {os.getloadavg()[0]:.1f} after"
    print(tables(result))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(result, out, indent=1)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"speed.py: {failed}")
    except FileNotFoundError as missing:
        sys.exit(f"speed.py: there is no {missing.filename}")
