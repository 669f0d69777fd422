"""What servers tell of themselves, and walks."""

import asyncio
import tempfile
import time
import unittest

import gannet
import gannet.aio
from server import Server

PATIENT = 30.0  # the machine may be busy
NOTHING_LISTENS = "127.0.0.1:1"


class ObservedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = tempfile.TemporaryDirectory()
        cls.server = Server(f"--data={cls.data.name}", "--slowlog_us=1")
        cls.client = gannet.Client(cls.server.address, deadline=PATIENT, connect_timeout=PATIENT)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.kill()
        cls.data.cleanup()

    def setUp(self):
        self.client.flush()

    def test_a_snapshot_is_whole_when_the_call_returns(self):
        for i in range(10):
            self.client.put(f"key{i}", "value")
        storage = self.client.snapshot()
        self.assertEqual((storage.sync, storage.directory, storage.memory_file), ("interval", self.data.name, ""))
        self.assertEqual(storage.snapshot.items, 10)
        self.assertLess(abs(storage.snapshot.completed - time.time()), 3600)
        self.assertEqual(self.client.storage().snapshot, storage.snapshot)

    def test_a_server_without_a_disk_writes_no_snapshot(self):
        server = Server()
        with gannet.Client(server.address, deadline=PATIENT, connect_timeout=PATIENT) as client:
            self.assertEqual(client.storage().sync, "")
            self.assertRaises(gannet.FailedPrecondition, client.snapshot)
        server.kill()

    def test_lists_clients_and_slow_requests(self):
        self.client.put("large", bytes(1 << 20))
        slow = [request for request in self.client.slow_requests() if request.value_size == 1 << 20]
        self.assertEqual((slow[0].request, slow[0].key, slow[0].key_size), ("put", b"large", 5))
        end = time.monotonic() + PATIENT  # the list is as old as a third of the server's --silence_ms
        (session,) = (server["session_id"] for server in self.client.servers())
        while not any(c.session_id == session and c.requests for c in self.client.connected_clients()):
            self.assertLess(time.monotonic(), end)
        self.assertRaises(gannet.InvalidArgument, self.client.connected_clients, 1)

    def test_walks_through_all_items(self):
        wanted = {f"key{i}".encode(): str(i).encode() for i in range(1000)}
        self.client.mput(wanted)
        self.client.put("long", bytes(100_000))
        found = {item.key: item for item in gannet.walk(self.server.address, reads_per_second=0, deadline=PATIENT)}
        long = found.pop(b"long")
        self.assertEqual((long.value, long.info.size), (b"", 100_000))
        self.assertGreater(long.block_size, 100_000)
        self.assertEqual({key: item.value for key, item in found.items()}, wanted)

    def test_finds_hot_keys(self):
        server = Server("--on_full=evict")
        with gannet.Client(server.address, deadline=PATIENT, connect_timeout=PATIENT) as client:
            client.put("key", "value")
        (key,) = gannet.hot_keys(server.address, deadline=PATIENT)
        self.assertEqual((key.key, key.info.size), (b"key", 5))
        self.assertGreater(key.uses, 0)
        server.kill()
        self.assertRaises(gannet.FailedPrecondition, gannet.hot_keys, self.server.address)

    def test_a_walk_may_be_left_early(self):
        self.client.mput({f"key{i}": "v" for i in range(1000)})
        walk = gannet.walk(self.server.address, deadline=PATIENT)
        self.assertEqual(next(walk).value, b"v")
        walk.close()

    def test_a_walk_of_no_server_says_so(self):
        with self.assertRaises(gannet.Error) as raised:
            list(gannet.walk(NOTHING_LISTENS, connect_timeout=0.5))
        self.assertIn("127.0.0.1:1", str(raised.exception))

    def test_asyncio_has_the_same(self):
        async def ask():
            async with gannet.aio.Client(self.server.address, deadline=PATIENT, connect_timeout=PATIENT) as client:
                lock = await client.lock("key")
                self.assertEqual([held.word for held in await client.locks()], [lock.word])
                self.assertTrue(await client.break_lock("key"))
                self.assertFalse(await client.break_lock("key"))
                await client.put("key", "value")
                self.assertEqual((await client.snapshot()).snapshot.items, 1)
                self.assertEqual((await client.storage()).sync, "interval")
                await client.connected_clients()
                await client.slow_requests()
            with self.assertRaises(ValueError):
                await client.locks()
        asyncio.run(ask())
