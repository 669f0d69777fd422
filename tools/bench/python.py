#!/usr/bin/env python3
"""GETs a second from Python, one at a time: gannet beside redis-py and pymemcache, in one run.

    python.py --build DIR [--gets N] [--value_size N]

All clients and servers run on this host; Gannet's on softverbs. Each client runs three times, in turns,
and its best run counts. Prints a line for each, and how many times faster gannet is. It needs
python3-redis, python3-pymemcache, redis-server and memcached.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import servers  # noqa: E402

RUNS = 3
KEYS = 1000


def connect(store, address):
    """Returns functions put(key, value) and get(key)."""
    host, _, port = address.rpartition(":")
    if store == "gannet":
        import gannet
        client = gannet.Client(address)
        return client.put, client.get
    if store == "redis-py":
        import redis
        client = redis.Redis(host, int(port))
        return client.set, client.get
    import pymemcache
    client = pymemcache.Client((host, int(port)), no_delay=True)
    return client.set, client.get


def measure(store, address, gets, value_size):
    """Prints GETs a second, after as many GETs again that do not count."""
    put, get = connect(store, address)
    value = b"x" * value_size
    keys = [f"key{i}" for i in range(KEYS)]
    for key in keys:
        put(key, value)
    rate = 0.0
    for _ in range(2):
        begin = time.perf_counter()
        for i in range(gets):
            if get(keys[i % KEYS]) != value:
                sys.exit(f"{store} has a wrong value")
        rate = gets / (time.perf_counter() - begin)
    print(rate)


def run_one(build, store, address, gets, value_size):
    """In a process of its own, as only Gannet's needs softverbs."""
    command = [sys.executable, "-B", __file__, "--build", build, "--gets", str(gets), "--value_size", str(value_size),
               "--store", store, "--address", address]
    environment = dict(os.environ)
    if store == "gannet":
        command = [f"{build}/bin/softverbs-run", *command]
        environment["PYTHONPATH"] = f"{build}/python"
    return float(subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--gets", type=int, default=50_000)
    parser.add_argument("--value_size", type=int, default=64)
    parser.add_argument("--store", help=argparse.SUPPRESS)  # of a process that measures
    parser.add_argument("--address", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.store:
        measure(arguments.store, arguments.address, arguments.gets, arguments.value_size)
        return
    best = {"gannet": 0.0, "redis-py": 0.0, "pymemcache": 0.0}
    with contextlib.ExitStack() as stack:
        addresses = {"gannet": stack.enter_context(servers.gannet(arguments.build, "--memory=64M")),
                     "redis-py": stack.enter_context(servers.redis()),
                     "pymemcache": stack.enter_context(servers.memcached(64))}
        for _ in range(RUNS):
            for store, address in addresses.items():
                rate = run_one(arguments.build, store, address, arguments.gets, arguments.value_size)
                best[store] = max(best[store], rate)
    for store, rate in best.items():
        print(f"{store:12}{rate:10,.0f} GETs/s" + (
            "" if store == "gannet" else f"   gannet: {best['gannet'] / rate:.1f} times as many"))


main()
