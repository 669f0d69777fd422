"""One client of tools/bench/peers.py: puts, gets and looks for keys in batches, and checks every value.

    peers_client.py STORE ADDRESS --number N --size BYTES --batch N --values N --seconds S

A process of its own, as each store has a virtual environment and a device. Prints a line when it is ready and
after each phase, and begins each phase when it reads a line: so clients begin together, and nobody polls meanwhile.
"""

import argparse
import asyncio
import json
import sys
import time

import numpy


class Gannet:
    def __init__(self, address, arguments):
        import gannet
        self.client = gannet.Client(address)
        self.memory = self.client.allocate(arguments.batch * arguments.size)
        self.bytes = numpy.frombuffer(self.memory.view, dtype=numpy.uint8)
        self.places = [self.memory[i * arguments.size:(i + 1) * arguments.size] for i in range(arguments.batch)]

    def prepared(self, names):
        return names, list(zip(names, self.places))

    def put(self, batch):
        self.client.mput_from(batch[1])

    def get(self, batch):
        self.client.mget_into(batch[1])

    def exists(self, batch):
        return self.client.mexists(batch[0])


class Redis:
    """Pipelines, over TCP."""

    def __init__(self, address, arguments):
        import redis
        host, _, port = address.rpartition(":")
        self.redis = redis.Redis(host, int(port))
        self.bytes = numpy.zeros(arguments.batch * arguments.size, dtype=numpy.uint8)
        self.size = arguments.size
        whole = memoryview(self.bytes)
        self.parts = [whole[i * self.size:(i + 1) * self.size] for i in range(arguments.batch)]

    def prepared(self, names):
        return names

    def put(self, names):
        pipe = self.redis.pipeline(transaction=False)
        for name, part in zip(names, self.parts):
            pipe.set(name, part)
        pipe.execute()

    def get(self, names):
        for part, value in zip(self.parts, self.redis.mget(names)):
            part[:] = value

    def exists(self, names):
        pipe = self.redis.pipeline(transaction=False)
        for name in names:
            pipe.exists(name)
        return pipe.execute()


class InfiniStore:
    def __init__(self, address, arguments, kind):
        import infinistore
        host, _, port = address.rpartition(":")
        self.loop = asyncio.new_event_loop()
        self.connection = infinistore.InfinityConnection(infinistore.ClientConfig(
            host_addr=host, service_port=int(port), connection_type=kind, dev_name="softverbs0",
            link_type="Ethernet", log_level="error"))
        self.loop.run_until_complete(self.connection.connect_async())
        self.size = arguments.size
        self.bytes = numpy.zeros(arguments.batch * arguments.size, dtype=numpy.uint8)
        self.begin = self.bytes.ctypes.data
        if kind == infinistore.TYPE_RDMA:
            self.connection.register_mr(self.begin, self.bytes.nbytes)

    def prepared(self, names):
        return names, [(name, i * self.size) for i, name in enumerate(names)]

    def put(self, batch):
        self.loop.run_until_complete(self.connection.rdma_write_cache_async(batch[1], self.size, self.begin))

    def get(self, batch):
        self.loop.run_until_complete(self.connection.rdma_read_cache_async(batch[1], self.size, self.begin))

    def exists(self, batch):
        return [self.connection.check_exist(name) for name in batch[0]]  # it has no call for many


class InfiniStoreTcp(InfiniStore):
    def put(self, batch):
        for name, offset in batch[1]:
            self.connection.tcp_write_cache(name, self.begin + offset, self.size)

    def get(self, batch):
        for name, offset in batch[1]:
            self.bytes[offset:offset + self.size] = self.connection.tcp_read_cache(name)


class Mooncake:
    """`address` is that of the master and that of the metadata, with a comma."""

    def __init__(self, address, arguments, protocol, segment_bytes=0):
        from mooncake.store import MooncakeDistributedStore
        master, metadata = address.split(",")
        self.store = MooncakeDistributedStore()
        device = "softverbs0" if protocol == "rdma" else ""
        if self.store.setup(f"127.0.0.1:{arguments.port}", f"http://{metadata}/metadata", segment_bytes, 64 << 20,
                            protocol, device, master) != 0:
            sys.exit("mooncake: setup fails")
        if segment_bytes:
            return
        self.bytes = numpy.zeros(arguments.batch * arguments.size, dtype=numpy.uint8)
        begin = self.bytes.ctypes.data
        if self.store.register_buffer(begin, self.bytes.nbytes) != 0:
            sys.exit("mooncake: register_buffer fails")
        self.pointers = [begin + i * arguments.size for i in range(arguments.batch)]
        self.sizes = [arguments.size] * arguments.batch

    def prepared(self, names):
        return names

    def put(self, names):
        if any(self.store.batch_put_from(names, self.pointers[:len(names)], self.sizes[:len(names)])):
            sys.exit("mooncake: a put fails")

    def get(self, names):
        if min(self.store.batch_get_into(names, self.pointers[:len(names)], self.sizes[:len(names)])) < 0:
            sys.exit("mooncake: a get fails")

    def exists(self, names):
        return [found == 1 for found in self.store.batch_is_exist(names)]


def connected(store, address, arguments):
    if store == "gannet":
        return Gannet(address, arguments)
    if store == "redis":
        return Redis(address, arguments)
    if store.startswith("infinistore"):
        return (InfiniStore(address, arguments, "RDMA") if store == "infinistore" else
                InfiniStoreTcp(address, arguments, "TCP"))
    return Mooncake(address, arguments, "rdma" if store == "mooncake" else "tcp")


class Values:
    """Values that tell whose they are: 8 bytes of the key's number, and then bytes that follow from it."""

    STEP = 0x9e3779b97f4a7c15

    def __init__(self, size, first):
        self.first = first
        self.words = numpy.arange(1, size // 8 + 2, dtype=numpy.uint64)
        self.size = size

    def of(self, number):
        words = self.words * numpy.uint64((self.STEP * (self.first + number + 1)) % 2**64)
        words[0] = self.first + number
        return words.view(numpy.uint8)[:self.size]


def wait_for_line(text):
    print(text, flush=True)
    if not sys.stdin.readline():
        sys.exit(0)  # whoever measures is gone


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("address")
    for name in ("number", "size", "batch", "values", "port"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    arguments = parser.parse_args()
    if arguments.store.endswith("-storage"):  # of Mooncake, whose clients lend the memory
        lender = Mooncake(arguments.address, arguments, "tcp" if "tcp" in arguments.store else "rdma",
                          segment_bytes=arguments.size)
        wait_for_line("ready")
        del lender
        return
    store = connected(arguments.store, arguments.address, arguments)
    batch, size = arguments.batch, arguments.size
    values = Values(size, arguments.number * arguments.values)
    names = [f"client{arguments.number}-size{size}-key{i}" for i in range(arguments.values)]
    starts = range(0, arguments.values, batch)
    batches = [store.prepared(names[i:i + batch]) for i in starts]
    rows = store.bytes.reshape(batch, size)
    stamps = [numpy.array([values.of(i + j)[:8] for j in range(batch)]) for i in starts]
    spent = {}

    wait_for_line("ready")
    spent["put"] = 0.0  # new keys: two of the stores never replace a value
    for start, prepared in zip(starts, batches):
        for j in range(batch):
            rows[j] = values.of(start + j)
        began = time.perf_counter()
        store.put(prepared)
        spent["put"] += time.perf_counter() - began
    counts = {"put": arguments.values}
    for start, prepared in zip(starts, batches):
        rows[:] = 0
        store.get(prepared)
        for j in range(batch):
            if not numpy.array_equal(rows[j], values.of(start + j)):
                sys.exit(f"{arguments.store} has a wrong value of {names[start + j]}")

    order = numpy.random.default_rng(arguments.number).permutation(len(batches))
    for phase in ("get", "exists"):
        wait_for_line(json.dumps({"done": spent, "counts": counts}))
        done, used, until = 0, 0.0, time.perf_counter() + arguments.seconds
        while used == 0.0 or time.perf_counter() < until:
            at = order[done % len(order)]
            if phase == "get":
                rows[:, :8] = 0
            began = time.perf_counter()
            answer = getattr(store, phase)(batches[at])
            used += time.perf_counter() - began
            if phase == "get" and not numpy.array_equal(rows[:, :8], stamps[at]):
                sys.exit(f"{arguments.store} has a wrong value")
            if phase == "exists" and not all(answer):
                sys.exit(f"{arguments.store} does not find a key")
            done += 1
        spent[phase], counts[phase] = used, done * batch
    wait_for_line(json.dumps({"done": spent, "counts": counts}))


main()
