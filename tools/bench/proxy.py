#!/usr/bin/env python3
"""What gannet-proxy costs and gives: foreign clients against it, beside Redis and memcached themselves.

    proxy.py --build DIR [--requests N] [--runs N] [--json FILE]

redis-benchmark runs GETs and SETs against gannet-proxy and against redis-server, memaslap a mix of 90 %
gets against gannet-proxy and against memcached, with the same settings, in turns; the best of
three runs counts. For the proxy it also prints what the Gannet server did for the GETs: requests and CPU.
All run on this host, Gannet on softverbs. It needs redis-tools, redis-server, memcached and
libmemcached-tools.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import servers  # noqa: E402

KEYS = 1000
# (connections, commands that a connection sends at once)
SETTINGS = [(1, 1), (16, 1), (16, 16)]


def output_of(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
                          timeout=600).stdout


def server_costs(build, address):
    """Returns the server's requests and CPU so far, with those of this question."""
    stats = json.loads(output_of([f"{build}/bin/kvcli", "--quiet", "--device=soft", f"--server={address}", "--json",
                                  "stats"]))
    return stats["rpcs"], stats["cpu_us"]


def redis_benchmark(address, command, clients, pipeline, requests):
    """Returns requests a second."""
    host, _, port = address.rpartition(":")
    said = output_of(["redis-benchmark", "-h", host, "-p", port, "-n", str(requests), "-c", str(clients), "-P",
                      str(pipeline), "-d", "64", "-r", str(KEYS), "-t", command, "--csv"])
    rate = re.search(rf'^"{command.upper()}","([\d.]+|inf)"', said, re.MULTILINE).group(1)
    if rate == "inf":  # it took less than the millisecond that redis-benchmark counts in
        return redis_benchmark(address, command, clients, pipeline, 10 * requests)
    return float(rate)


def memaslap(address, clients, requests):
    """Returns operations a second."""
    memaslap_of_debian = shutil.which("memcaslap") or "memaslap"
    said = output_of([memaslap_of_debian, "-s", address, "-T", "1", "-c", str(clients), "-x", str(requests)])
    return float(re.search(r"TPS: (\d+)", said).group(1))


def best_in_turns(addresses, runs, measure):
    """By store: the best rate."""
    best = dict.fromkeys(addresses, 0.0)
    for _ in range(runs):
        for store, address in addresses.items():
            best[store] = max(best[store], measure(address))
    return best


def rates(addresses, requests, runs):
    """Rows: what ran, and the rate of each store."""
    rows = []
    to_redis = {store: addresses[store] for store in ("gannet-proxy", "redis")}
    for command in ("set", "get"):
        for clients, pipeline in SETTINGS:
            best = best_in_turns(to_redis, runs, lambda address, of=(command, clients, pipeline): redis_benchmark(
                address, *of, requests * of[2]))
            rows.append({"what": f"{command.upper()}, {clients} connections, {pipeline} at once", **best})
    to_memcached = {store: addresses[store] for store in ("gannet-proxy", "memcached")}
    best = best_in_turns(to_memcached, runs, lambda address: memaslap(address, 16, requests))
    rows.append({"what": "memaslap, 90 % get, 16 connections", **best})
    return rows


def costs_of_gets(build, server, proxy, requests):
    """Returns what the server did for each GET through the proxy, less the cost of asking."""
    before = server_costs(build, server)
    again = server_costs(build, server)
    redis_benchmark(proxy, "get", 16, 16, requests)
    after = server_costs(build, server)
    rpcs = (after[0] - again[0]) - (again[0] - before[0])
    return {"gets": requests, "server_rpcs": rpcs, "server_cpu_us_per_get": (after[1] - again[1]) / requests}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    build = arguments.build
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(servers.gannet(build, "--memory=256M"))
        proxy = stack.enter_context(servers.ready_server(
            [f"{build}/bin/gannet-proxy", "--device=soft", f"--server={server}", "--listen=127.0.0.1:0"]))
        addresses = {"gannet-proxy": proxy, "redis": stack.enter_context(servers.redis()),
                     "memcached": stack.enter_context(servers.memcached(256))}
        rows = rates(addresses, arguments.requests, arguments.runs)
        costs = costs_of_gets(build, server, proxy, 4 * arguments.requests)
    for row in rows:
        others = [store for store in row if store not in ("what", "gannet-proxy")]
        print(f"{row['what']:40}" + "".join(f"  {store} {row[store]:>9,.0f}/s" for store in ["gannet-proxy", *others]))
    print(f"{costs['gets']} GETs through the proxy: {costs['server_rpcs']} requests and "
          f"{costs['server_cpu_us_per_get']:.3f} us of the server's CPU each")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"rates": rows, "costs": costs}, file, indent=2)


main()
