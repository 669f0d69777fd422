#!/usr/bin/env python3
"""Stores that LLM caches use, beside Gannet and on the same device: puts, gets and lookups of many keys a call.

    peers.py --build DIR --venv DIR [--quick] [--json FILE]

Installs InfiniStore and Mooncake into a virtual environment at --venv, if they are not there yet (about 300 MB from the
Python registry). All stores run on this host: Gannet, InfiniStore and Mooncake over RDMA on softverbs, InfiniStore and
Mooncake over TCP too, and Redis over TCP. For each size of values and number of clients, each store gets new
servers and the same keys. Clients (peers_client.py) check every value. Stores take turns, and the best of three
runs counts. Prints a table. It needs redis-server and python3-redis.

A figure is the sum over all clients of what each did a second within the store's calls. The work between calls,
which is the same for all, counts only as far as it takes cores from others.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import servers  # noqa: E402

# InfiniStore has libuv's structs of this uvloop's version in it. Mooncake's library wants CUDA's, also without a GPU.
PACKAGES = ["infinistore==0.2.35", "uvloop==0.18.0", "mooncake-transfer-engine-non-cuda==0.3.13",
            "nvidia-cuda-runtime-cu12", "numpy", "cffi", "redis", "requests", "aiohttp", "fastapi", "uvicorn",
            "msgpack"]
WITHOUT_DEPENDENCIES = {"infinistore==0.2.35", "mooncake-transfer-engine-non-cuda==0.3.13", "nvidia-cuda-runtime-cu12"}

INFINISTORE = """
import asyncio, sys, uvloop
from infinistore import ServerConfig, register_server
loop = uvloop.new_event_loop()
asyncio.set_event_loop(loop)
register_server(loop, ServerConfig(
    manage_port=int(sys.argv[2]), service_port=int(sys.argv[1]), log_level="error", prealloc_size=int(sys.argv[3]),
    dev_name="softverbs0", ib_port=1, link_type="Ethernet", minimal_allocate_size=64, auto_increase=False,
    evict_interval=5, evict_min_threshold=0.6, evict_max_threshold=0.8))
loop.run_forever()
"""

STORES = ("gannet", "infinistore", "mooncake", "infinistore-tcp", "mooncake-tcp", "redis")
RUNS = 3
FULL = {"sizes": (100, 4096, 65536, 1 << 20), "clients": (1, 8), "seconds": 2.0, "bytes": 64 << 20, "runs": RUNS}
QUICK = {"sizes": (100, 65536), "clients": (1, 2), "seconds": 0.1, "bytes": 2 << 20, "runs": 1}
BATCH = 32
VALUES_MAX = 2048  # of all clients together; InfiniStore spends 64 KiB on each
MEMORY = "1G"
GIB = 1


def install(venv):
    marker = os.path.join(venv, "installed")
    wanted = "\n".join(PACKAGES)
    with contextlib.suppress(FileNotFoundError), open(marker, encoding="utf-8") as file:
        if file.read() == wanted:
            return
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, timeout=300)
    pip = [os.path.join(venv, "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
    with_dependencies = [package for package in PACKAGES if package not in WITHOUT_DEPENDENCIES]
    subprocess.run([*pip, *with_dependencies], check=True, timeout=900)
    subprocess.run([*pip, "--no-deps", *sorted(WITHOUT_DEPENDENCIES)], check=True, timeout=900)
    with open(marker, "w", encoding="utf-8") as file:
        file.write(wanted)


class Bench:
    def __init__(self, build, venv, scale):
        self.build = os.path.abspath(build)
        self.venv = os.path.abspath(venv)
        self.scale = scale
        ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site = subprocess.run([f"{self.venv}/bin/python", "-c", ask], check=True, capture_output=True, text=True,
                              timeout=60).stdout.strip()
        self.mooncake = f"{site}/mooncake"
        self.environment = {**os.environ, "LD_LIBRARY_PATH": f"{site}/nvidia/cuda_runtime/lib:{self.mooncake}",
                            "PYTHONPATH": f"{self.build}/python", "MC_LOG_LEVEL": "ERROR", "GLOG_minloglevel": "2",
                            "INFINISTORE_LOG_LEVEL": "error",
                            # Mooncake's threads spin. With two in each process, as it likes best, they take the cores from
                            # each other: with one it did up to ten times as much on two cores.
                            "MC_WORKERS_PER_CTX": "1"}
        self.client = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers_client.py")
        self.ports = set()  # of clients; one that is not bound yet would be free for the next, too

    def port(self):
        while (port := servers.free_port()) in self.ports:
            pass
        self.ports.add(port)
        return port

    def python(self, *arguments, on_softverbs=True):
        run = [f"{self.build}/bin/softverbs-run"] if on_softverbs else []
        return [*run, f"{self.venv}/bin/python", "-B", *arguments]

    def client_command(self, store, address, number, size, values):
        return self.python(self.client, store, address, f"--number={number}", f"--size={size}", f"--batch={BATCH}",
                           f"--values={values}", f"--port={self.port()}",
                           f"--seconds={self.scale['seconds']}", on_softverbs=store != "redis")

    @contextlib.contextmanager
    def process(self, command):
        """A process of peers_client.py's protocol."""
        process = subprocess.Popen(command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.stdin.close()
            servers.stop(process)
            process.stdout.close()
            process.stderr.close()

    @contextlib.contextmanager
    def server(self, store):
        if store == "gannet":
            with servers.gannet(self.build, f"--memory={MEMORY}") as address:
                yield address
        elif store == "redis":
            with servers.redis() as address:
                yield address
        elif store.startswith("infinistore"):
            command = self.python("-c", INFINISTORE)
            with servers.tcp_server(lambda port: [*command, port, str(servers.free_port()), str(GIB)],
                                    environment=self.environment) as address:
                yield address
        else:
            with self.mooncake_server(store) as address:
                yield address

    @contextlib.contextmanager
    def mooncake_server(self, store):
        metadata = servers.free_port()
        command = [f"{self.mooncake}/mooncake_master", "-enable_http_metadata_server=true",
                   "-http_metadata_server_host=127.0.0.1", f"-http_metadata_server_port={metadata}",
                   f"-metrics_port={servers.free_port()}",
                   "-default_kv_lease_ttl=10m"]  # on a busy machine a get may take longer than the 10 s of its lease
        with servers.tcp_server(lambda port: [*command, f"-rpc_port={port}"], environment=self.environment) as master:
            address = f"{master},127.0.0.1:{metadata}"
            storage = self.client_command(f"{store}-storage", address, 0, GIB << 30, 1)
            with self.process(storage) as process:
                said(process, "ready")
                yield address

    def run(self, store, size, clients):
        """Returns keys a second by phase."""
        each = min(VALUES_MAX, self.scale["bytes"] // size) // clients // BATCH * BATCH
        each = max(each, BATCH)
        with contextlib.ExitStack() as stack:
            address = stack.enter_context(self.server(store))
            processes = [stack.enter_context(self.process(self.client_command(store, address, i, size, each)))
                         for i in range(clients)]
            for process in processes:
                said(process, "ready")
            rates = {}
            for phase in ("put", "get", "exists"):
                for process in processes:
                    process.stdin.write("\n")
                    process.stdin.flush()
                answers = [json.loads(said(process)) for process in processes]
                rates[phase] = sum(answer["counts"][phase] / answer["done"][phase] for answer in answers)
            return rates


def said(process, wanted=None):
    line = process.stdout.readline().strip()
    while line and wanted is None and not line.startswith("{"):
        line = process.stdout.readline().strip()  # some of the stores print, too
    while line and wanted is not None and line != wanted:
        line = process.stdout.readline().strip()
    if not line:
        process.wait(60)
        raise servers.DidNotStart(f"{' '.join(process.args)}: {process.stderr.read()[-2000:]}")
    return line


def measure(bench):
    rows = []
    for size in bench.scale["sizes"]:
        for clients in bench.scale["clients"]:
            best = {store: {} for store in STORES}
            for _ in range(bench.scale["runs"]):
                for store in STORES:
                    for phase, rate in bench.run(store, size, clients).items():
                        best[store][phase] = max(rate, best[store].get(phase, 0.0))
            rows.append({"size": size, "clients": clients, "stores": best})
            show(rows[-1])
    return rows


def show(row):
    for phase in ("put", "get", "exists"):
        cells = "  ".join(f"{store} {row['stores'][store][phase]:>10.0f}" for store in STORES)
        print(f"{row['size']:>8} B  {row['clients']} clients  {phase:<6}  {cells}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--venv", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    install(arguments.venv)
    bench = Bench(arguments.build, arguments.venv, QUICK if arguments.quick else FULL)
    rows = measure(bench)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
