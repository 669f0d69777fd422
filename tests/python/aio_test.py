"""gannet.aio.Client against a server."""

import asyncio
import gc
import threading
import unittest
from unittest import mock

import gannet
import gannet.aio
from server import DROPS, Server, descriptors, left_open

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

    async def test_an_operation_that_was_cancelled_while_it_waits_for_room_may_be_refused(self):
        """Its turn comes when nobody waits for it any more, and then C refuses its key."""
        puts = [asyncio.ensure_future(self.client.put(f"k{i}" if i != 400 else "k" * 251, "v")) for i in range(600)]
        await asyncio.sleep(0)
        puts.pop(400).cancel()
        self.assertEqual(len(await asyncio.wait_for(asyncio.gather(*puts), PATIENT)), 599)

    async def test_what_python_refuses_when_its_turn_comes_ends_alone(self):
        sums = [self.client.incr(f"n{i}", 1 if i != 400 else 2**63) for i in range(600)]
        ends = await asyncio.wait_for(asyncio.gather(*sums, return_exceptions=True), PATIENT)
        self.assertIsInstance(ends.pop(400), OverflowError)
        self.assertEqual(ends, [1] * 599)

    async def test_an_operation_that_is_cancelled_while_it_waits_for_room_is_not_begun(self):
        puts = [asyncio.ensure_future(self.client.put(f"k{i}", "v")) for i in range(300)]
        await asyncio.sleep(0)
        for put in puts[200:]:
            put.cancel()
        await asyncio.gather(*puts[:200])
        found = await self.client.mexists([f"k{i}" for i in range(300)])
        self.assertEqual(found, [True] * 200 + [False] * 100)

    async def test_a_deadline_counts_from_the_call(self):
        n = 3000
        server = Server()
        self.addCleanup(server.kill)
        async with gannet.aio.Client(server.address, deadline=0.2, connect_timeout=PATIENT) as client:
            server.stop()
            ends = await asyncio.gather(*(client.put(f"k{i}", "v") for i in range(n)), return_exceptions=True)
            self.assertEqual({type(end) for end in ends}, {gannet.DeadlineExceeded})
            # Those who wait for room end with those ahead of them, and so are not begun.
            self.assertLess(client._last, n / 2)

    async def test_the_timeout_of_a_lock_is_that_of_all_that_it_does(self):
        server = Server()
        self.addCleanup(server.kill)
        async with gannet.aio.Client(server.address, deadline=PATIENT, connect_timeout=PATIENT) as client:
            server.stop()
            patient = asyncio.ensure_future(client.put("key", "v"))
            with self.assertRaises(gannet.DeadlineExceeded):
                await client.lock("key", timeout=0.1)
            self.assertFalse(patient.done())
            server.go_on()
            await patient

    async def test_what_operators_ask_does_not_wait_longer_for_those_before_it(self):
        server = Server()
        self.addCleanup(server.kill)
        async with gannet.aio.Client(server.address, deadline=PATIENT, connect_timeout=PATIENT) as client:
            self.assertEqual(await client.locks(), [])
            server.stop()
            patient = asyncio.ensure_future(client.locks())
            await asyncio.sleep(0)
            with self.assertRaises(gannet.DeadlineExceeded):
                await client.locks(deadline=0.1)
            self.assertFalse(patient.done())
            server.go_on()
            self.assertEqual(await patient, [])

    async def test_a_cancelled_lock_is_given_back(self):
        keys = [f"k{i}" for i in range(200)]
        for turns in range(4):
            tasks = [asyncio.ensure_future(self.client.lock(key)) for key in keys]
            for _ in range(turns):
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            for task in tasks:
                await _unlock_what_was_locked(task)
            await self._all_can_be_locked(keys)

    async def test_a_lock_that_was_acquired_when_the_cancellation_came_is_given_back(self):
        task = asyncio.ensure_future(self.client.try_lock("key"))
        end = self.client._end

        def end_and_cancel(operation, done):
            end(operation, done)
            task.cancel()  # before the task hears of the end
        with mock.patch.object(self.client, "_end", end_and_cancel):
            await asyncio.wait([task])
        self.assertTrue(task.cancelled())
        await self._all_can_be_locked(["key"])

    async def test_an_unlock_happens_though_it_is_cancelled(self):
        lock = await self.client.lock("key")
        puts = [asyncio.ensure_future(self.client.put(f"k{i}", "v")) for i in range(300)]
        unlock = asyncio.ensure_future(lock.unlock())
        await asyncio.sleep(0)
        unlock.cancel()  # which waits for room
        await asyncio.gather(*puts)
        await self._all_can_be_locked(["key"])

    async def _all_can_be_locked(self, keys):
        async with gannet.aio.Client(self.server.address, deadline=PATIENT, connect_timeout=PATIENT) as other:
            for key in keys:
                await (await other.lock(key)).unlock()

    async def test_a_client_that_is_dropped_frees_its_descriptors(self):
        for _ in range(DROPS):
            before = descriptors()
            client = gannet.aio.Client(self.server.address, deadline=PATIENT, connect_timeout=PATIENT)
            await client.put("key", "v")
            opened = descriptors() - before
            self.assertTrue(opened)
            with self.assertWarns(ResourceWarning):
                del client
                await asyncio.sleep(0)
                gc.collect()
            if not (left := left_open(opened)):
                break
        self.assertEqual(left, set())

    async def test_a_client_that_another_thread_drops_is_closed_in_the_loops_thread(self):
        clients = [gannet.aio.Client(self.server.address, deadline=PATIENT, connect_timeout=PATIENT)]
        await clients[0].put("key", "v")
        await asyncio.sleep(0)
        loop, closed_by = asyncio.get_running_loop(), asyncio.Queue()
        remove = loop.remove_reader

        def remove_reader(fd):
            closed_by.put_nowait(threading.get_ident())
            return remove(fd)
        with self.assertWarns(ResourceWarning), mock.patch.object(loop, "remove_reader", remove_reader):
            await asyncio.to_thread(clients.clear)
            self.assertEqual(await closed_by.get(), threading.get_ident())

    async def test_a_client_that_is_dropped_ends_what_it_has_begun(self):
        def begin():
            client = gannet.aio.Client(self.server.address, deadline=PATIENT, connect_timeout=PATIENT)
            return client._begin(lambda i: gannet.aio.lib.gannet_async_ping(client._c, 0, i), lambda done: "over", None)
        with self.assertWarns(ResourceWarning):
            future = begin()
            gc.collect()
            self.assertEqual(await asyncio.wait_for(future, PATIENT), "over")
            del future
            await asyncio.sleep(0)
            gc.collect()

    async def test_wrong_arguments_make_no_noise(self):
        with mock.patch("sys.unraisablehook") as noise:
            self.assertRaises(TypeError, gannet.aio.Client, wrong=1)
            gc.collect()
        noise.assert_not_called()

    async def test_closing_ends_what_is_under_way(self):
        waiting = asyncio.ensure_future(self.client.put("key", b"value"))
        await asyncio.sleep(0)
        self.client.close()
        with self.assertRaises(ConnectionError):
            await waiting
        with self.assertRaises(ValueError):
            await self.client.get("key")


async def _unlock_what_was_locked(task):
    await asyncio.wait([task])
    if not task.cancelled() and task.exception() is None:  # keys may share a lock word, which is an error
        await task.result().unlock()


if __name__ == "__main__":
    unittest.main()
