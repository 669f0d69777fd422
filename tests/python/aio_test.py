"""gannet.aio.Client against a server."""

import asyncio
import unittest

import gannet
import gannet.aio
from server import Server

PATIENT = 30.0  # the machine may be busy


class AioTest(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    async def asyncSetUp(self):
        self.client = gannet.aio.Client(self.server.address, deadline=PATIENT, connect_timeout=PATIENT)
        await self.client.flush()

    async def asyncTearDown(self):
        self.client.close()

    async def test_gets_what_was_put(self):
        version = await self.client.put("key", b"value", ttl=3600, flags=7)
        item = await self.client.gets("key")
        self.assertEqual((item.value, item.version, item.info.flags), (b"value", version, 7))
        self.assertIsNone(await self.client.get("none"))
        self.assertEqual(await self.client.get("none", 1), 1)
        await self.client.put(b"\0", b"x" * 100_000)
        self.assertEqual(len(await self.client.get(b"\0")), 100_000)
        buffer = bytearray(3)
        self.assertEqual((await self.client.get_into("key", buffer)).size, 5)
        self.assertEqual(buffer, b"val")
        self.assertIsNone(await self.client.get_into("none", buffer))

    async def test_long_values_go_through_registered_memory(self):
        own = bytearray(40_000)
        with self.client.allocate(100_000) as memory, self.client.register(own, remote_read=False) as target:
            memory.view[:60_000] = b"a" * 30_000 + b"b" * 30_000
            version = await self.client.put_from("long", memory[:60_000])
            info = await self.client.get_into("long", [target[:30_000], memory[60_000:90_000]])
            self.assertEqual((info.size, info.version), (60_000, version))
            self.assertEqual(own[:30_000], b"a" * 30_000)
            self.assertEqual(bytes(memory.view[60_000:90_000]), b"b" * 30_000)
            self.assertIsNone((await self.client.mget_into([("long", memory), ("none", target)]))[1])
            with self.assertRaises(gannet.InvalidArgument):
                await self.client.put_from("short", target)

    async def test_more_operations_than_there_is_room_for(self):
        n = 1000  # the depth is 128
        await asyncio.gather(*(self.client.put(f"k{i}", str(i)) for i in range(n)))
        values = await self.client.mget(f"k{i}" for i in range(n))
        self.assertEqual(values, [str(i).encode() for i in range(n)])

    async def test_heads_of_many(self):
        keys = [f"k{i}" for i in range(300)]
        versions = await self.client.mput({key: "v" * 10 for key in keys})
        self.assertEqual(await self.client.mexists(keys + ["none"]), [True] * 300 + [False])
        self.assertEqual(await self.client.get_if_changed("k0", versions[0]), (False, None))
        changed, item = await self.client.get_if_changed("k0", 1)
        self.assertEqual((changed, item.value, item.version), (True, b"v" * 10, versions[0]))
        version = await self.client.put("k0", "v" * 9000)
        self.assertEqual((await self.client.get_if_changed("k0", versions[0]))[1].value, b"v" * 9000)
        self.assertEqual(await self.client.get_if_changed("k0", version), (False, None))
        self.assertEqual(await self.client.get_if_changed("none", version), (True, None))
        self.assertEqual(await self.client.mdelete(["k0", "none"]), [True, False])
        self.assertFalse(await self.client.exists("k0"))
        found = await self.client.mexists(["k1", ""], return_errors=True)
        self.assertIs(found[0], True)
        self.assertIsInstance(found[1], gannet.InvalidArgument)
        with self.client.allocate(20_000) as memory:
            self.assertEqual(len(await self.client.mput_from([("a", memory), ("b", [memory[:5], memory[9:]])])), 2)
        self.assertEqual(len(await self.client.get("b")), 19_996)

    async def test_changes(self):
        await self.client.append("text", "b")
        await self.client.prepend("text", "a")
        self.assertEqual((await self.client.get_and_touch("text", 60)).value, b"ab")
        self.assertTrue(await self.client.touch("text"))
        self.assertEqual(await self.client.incr("n", 5, initial=10), 15)
        self.assertEqual(await self.client.decr("n"), 14)
        self.assertTrue(await self.client.delete("n"))
        self.assertFalse(await self.client.delete("n"))
        self.assertFalse(await self.client.touch("n"))
        self.assertEqual(len(await self.client.mput({"a": "1", "b": "2"})), 2)
        self.assertEqual((await self.client.stats())["items"], 3)
        await self.client.ping()

    async def test_errors_are_exceptions(self):
        await self.client.add("key", "one")
        with self.assertRaises(gannet.AlreadyExists):
            await self.client.add("key", "two")
        with self.assertRaises(gannet.NotFound):
            await self.client.replace("none", "two")
        with self.assertRaises(gannet.InvalidArgument):
            await self.client.get("")
        with self.assertRaises(TypeError):
            await self.client.put("key", 5)

    async def test_locks(self):
        async with gannet.aio.Client(self.server.address, deadline=PATIENT) as other:
            async with await self.client.lock("key", lease=60) as lock:
                self.assertIsNone(await other.try_lock("key"))
                with self.assertRaises(gannet.DeadlineExceeded):
                    await other.lock("key", timeout=0.01)
                await self.client.put("key", "v", if_version=0, lock=lock)
                await lock.extend(30)
            lock, item = await self.client.lock_and_get("key")
            self.assertEqual(item.value, b"v")
            self.assertIsNone(await other.try_lock("key"))
            await lock.unlock()
            waiting = asyncio.create_task(other.lock("key"))
            await (await waiting).unlock()

    async def test_a_cancelled_operation_disturbs_no_other(self):
        await self.client.put("key", b"value")
        cancelled = asyncio.ensure_future(self.client.get("key"))
        await asyncio.sleep(0)
        cancelled.cancel()
        self.assertEqual(await asyncio.gather(*(self.client.get("key") for _ in range(10))), [b"value"] * 10)

    async def test_closing_ends_what_is_under_way(self):
        waiting = asyncio.ensure_future(self.client.put("key", b"value"))
        await asyncio.sleep(0)
        self.client.close()
        with self.assertRaises(ConnectionError):
            await waiting
        with self.assertRaises(ValueError):
            await self.client.get("key")


if __name__ == "__main__":
    unittest.main()
