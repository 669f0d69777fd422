"""gannet.lmcache with a host that does what LMCache's native plugin does. Needs nothing of LMCache's."""

import os
import select
import threading
import time
import unittest

import gannet
from gannet import cache
from gannet.lmcache import Connector
from pool import BLOCK, Pool, counted, counter
from server import Server

PATIENT = 30.0  # the machine may be busy


class Host:
    """Waits on the descriptor, drains, and hands completions to those who submitted."""

    def __init__(self, address, **options):
        self.connector = Connector(address, connect_timeout=PATIENT, deadline=PATIENT, **options)
        self._poll = select.poll()
        self._poll.register(self.connector.event_fd(), select.POLLIN)
        self._ended = {}

    def wait(self, number):
        end = time.monotonic() + 2 * PATIENT
        while number not in self._ended:
            if time.monotonic() > end:
                raise AssertionError(f"batch {number} does not end")
            if self._poll.poll(500):
                for n, *rest in self.connector.drain_completions():
                    self._ended[n] = tuple(rest)
        return self._ended.pop(number)

    def set(self, keys, buffers):
        return self.wait(self.connector.submit_batch_set(keys, buffers))

    def get(self, keys, buffers):
        return self.wait(self.connector.submit_batch_get(keys, buffers))

    def exists(self, keys):
        return self.wait(self.connector.submit_batch_exists(keys))

    def delete(self, keys):
        return self.wait(self.connector.submit_batch_delete(keys))

    def until(self, asked):
        """Asks until the batch went well."""
        end = time.monotonic() + 2 * PATIENT
        while not (answer := asked())[0]:
            if time.monotonic() > end:
                raise AssertionError(f"still {answer}")
            select.select([], [], [], 0.05)  # leaves the core to the server
        return answer


class LmcacheTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.host = Host(cls.server.address)

    @classmethod
    def tearDownClass(cls):
        cls.host.connector.close()
        cls.server.kill()

    def setUp(self):
        self.pool = Pool(32)
        with gannet.Client(self.server.address, deadline=PATIENT, connect_timeout=PATIENT) as client:
            client.flush()
        self.keys = [f"org/model@{i:08x}@0@{i * 7919:032x}" for i in range(16)]

    def own(self, *flags):
        """Returns a server of the test's own, and a host of it."""
        server = Server(*flags)
        self.addCleanup(server.kill)
        host = Host(server.address)
        self.addCleanup(host.connector.close)
        return server, host

    def views(self, first=0, n=16):
        return [self.pool.view(first + i) for i in range(n)]

    def test_each_method(self):
        self.pool.fill(1, 16)
        self.assertEqual(self.host.exists(self.keys), (True, "", [False] * 16))
        self.assertEqual(self.host.set(self.keys, self.views()), (True, "", None))
        self.assertEqual(self.host.exists(self.keys), (True, "", [True] * 16))
        self.assertEqual(self.host.get(self.keys, self.views(16)), (True, "", [True] * 16))
        for i in range(16):
            self.assertEqual(bytes(self.pool.view(16 + i)), bytes([1 + i]) * BLOCK)
        self.assertEqual(self.host.delete(self.keys), (True, "", [True] * 16))
        self.assertEqual(self.host.delete(self.keys), (True, "", [False] * 16))
        self.assertEqual(self.host.exists([]), (True, "", []))

    def test_some_keys_are_misses(self):
        self.pool.fill(1, 16)
        self.host.set(self.keys[:3], self.views(n=3))
        asked = [self.keys[0], "none", self.keys[2]]
        self.assertEqual(self.host.exists(asked), (True, "", [True, False, True]))
        self.pool.view(17)[:] = b"#" * BLOCK
        self.assertEqual(self.host.get(asked, self.views(16, 3)), (True, "", [True, False, True]))
        self.assertEqual(bytes(self.pool.view(17)), b"#" * BLOCK)
        self.assertEqual(self.host.delete(asked), (True, "", [True, False, True]))

    def test_a_value_of_another_size_is_a_miss(self):
        self.host.set(self.keys[:1], [self.pool.view(0, 8192)])
        self.assertEqual(self.host.get(self.keys[:1], [self.pool.view(1, 4096)]), (True, "", [False]))
        self.assertEqual(self.host.get(self.keys[:1], [self.pool.view(1, 16384)]), (True, "", [False]))
        self.assertEqual(self.host.get(self.keys[:1], [self.pool.view(1, 8192)]), (True, "", [True]))

    def test_long_keys(self):
        model = "/srv/" + "models/" * 60
        keys = [f"{model}{which}@{i:08x}@0@{i:064x}" for which in "ab" for i in range(4)]
        self.assertEqual(len({cache.key_of(key) for key in keys}), 8)
        self.pool.fill(1, 16)
        self.assertEqual(self.host.set(keys, self.views(n=8)), (True, "", None))
        self.assertEqual(self.host.get(keys, self.views(16, 8)), (True, "", [True] * 8))
        self.assertEqual(bytes(self.pool.view(23)), bytes([8]) * BLOCK)
        with gannet.Client(self.server.address, deadline=PATIENT) as client:
            self.assertTrue(client.exists(cache.key_of(keys[0])))
        # Stored blocks must be found by later versions, so the rule is fixed.
        self.assertEqual(cache.key_of("k" * 250), b"k" * 250)
        self.assertEqual(cache.key_of("k" * 251), b"2d293c5a75f0d9dac1428e8eea72251d~" + b"k" * 217)
        self.assertEqual(len(cache.key_of("ü" * 200)), 250)

    def test_many_batches_at_a_time(self):
        self.pool.fill(1, 16)
        numbers = [self.host.connector.submit_batch_set([key], [view]) for key, view in zip(self.keys, self.views())]
        self.assertEqual(len(set(numbers)), 16)
        self.assertEqual([self.host.wait(number) for number in reversed(numbers)], [(True, "", None)] * 16)
        numbers = [self.host.connector.submit_batch_get([key], [view]) for key, view in zip(self.keys, self.views(16))]
        self.assertEqual([self.host.wait(number) for number in numbers], [(True, "", [True])] * 16)
        self.assertEqual(bytes(self.pool.view(31)), bytes([16]) * BLOCK)

    def test_wrong_batches_end_with_a_text(self):
        ok, error, _ = self.host.set(["key"], [memoryview(b"read only")])
        self.assertFalse(ok)
        self.assertIn("not writable", error)
        ok, error, _ = self.host.set(["key", ""], self.views(n=2))  # an empty key is none
        self.assertFalse(ok)
        self.assertIn("InvalidArgument", error)
        self.assertEqual(self.host.exists(["key"]), (True, "", [True]))
        ok, error, found = self.host.get(["key"], [])
        self.assertEqual((ok, found), (False, [False]))
        self.assertIn("1 keys and 0 buffers", error)
        for submit in (self.host.connector.submit_batch_get, self.host.connector.submit_batch_set):
            ok, error, _ = self.host.wait(submit(None, None))
            self.assertFalse(ok)
            self.assertIn("TypeError", error)
        for asked in (self.host.exists, self.host.delete):
            ok, error, found = asked(None)
            self.assertEqual((ok, found), (False, []))
            self.assertIn("TypeError", error)

    def test_a_block_that_is_too_long_says_so(self):
        block = bytearray((64 << 20) + 1)
        ok, error, _ = self.host.set(["long"], [block])
        self.assertFalse(ok)
        self.assertIn("67108865 bytes, at most 67108864", error)
        store = cache.Cache(self.server.address, deadline=PATIENT, connect_timeout=PATIENT)
        self.addCleanup(store.close)
        for put in (store.put_from, store.put_missing):
            outcome = put(["short", "long"], [self.pool.view(0), block])
            self.assertEqual((outcome.each, outcome.failed), ([True, False], 1))
            self.assertIn("67108865 bytes, at most 67108864", outcome.error)
        self.assertEqual(store.put_missing(["none"], None).each, [False])  # raises nothing

    def test_a_server_that_is_killed_is_a_miss_until_it_is_back(self):
        server, host = self.own()
        self.pool.fill(1, 16)
        self.assertTrue(host.set(self.keys, self.views())[0])
        batches = [host.connector.submit_batch_get(self.keys, self.views(16)) for _ in range(8)]
        with self.assertLogs("gannet", "WARNING") as logged:
            server.kill()
            for number in batches:
                ok, error, found = host.wait(number)
                self.assertEqual((ok, len(found)), (any(found) or not error, 16))
            for asked in (lambda: host.get(self.keys, self.views(16)), lambda: host.exists(self.keys),
                          lambda: host.delete(self.keys)):
                ok, error, found = asked()
                self.assertEqual((ok, found), (False, [False] * 16))
                self.assertIn("Unavailable", error)
            ok, error, found = host.set(self.keys, self.views())
            self.assertEqual((ok, found), (False, None))
            self.assertIn("Unavailable", error)

            again = Server(f"--listen={server.address}")
            self.addCleanup(again.kill)
            self.assertEqual(host.until(lambda: host.exists(self.keys)), (True, "", [False] * 16))
        self.assertEqual(host.until(lambda: host.set(self.keys, self.views())), (True, "", None))
        self.assertEqual(host.get(self.keys, self.views(16)), (True, "", [True] * 16))
        self.assertEqual(bytes(self.pool.view(31)), bytes([16]) * BLOCK)
        self.assertIn("are misses until the server is back", logged.output[0])
        self.assertIn("answer again", logged.output[-1])

    def test_a_server_that_starts_after_the_host(self):
        server, host = self.own()
        server.kill()
        ok, error, found = host.exists(["key"])
        self.assertEqual((ok, found), (False, [False]))
        self.assertIn(server.address, error)
        again = Server(f"--listen={server.address}")
        self.addCleanup(again.kill)
        self.assertEqual(host.until(lambda: host.exists(["key"])), (True, "", [False]))

    def test_one_of_two_servers_dies(self):
        other = Server()
        self.addCleanup(other.kill)
        host = Host(f"{self.server.address}, {other.address}")
        self.addCleanup(host.connector.close)
        self.pool.fill(1, 16)
        self.assertEqual(host.set(self.keys, self.views()), (True, "", None))
        other.kill()
        ok, error, found = host.get(self.keys, self.views(16))
        self.assertTrue(ok)
        self.assertIn("Unavailable", error)
        self.assertEqual(set(found), {True, False})
        self.assertEqual(host.exists(self.keys)[2], found)
        ok, error, _ = host.set(self.keys, self.views())
        self.assertFalse(ok)

    def test_a_full_server_evicts(self):
        _, host = self.own("--on_full=evict")
        for i in range(0, 1536, 16):  # 96 MiB into 64
            self.assertEqual(host.set([f"key{i + j}" for j in range(16)], self.views()), (True, "", None))
        found = host.exists([f"key{i}" for i in range(1536)])[2]
        self.assertLess(sum(found), 1024)
        self.assertGreater(sum(found), 100)

    def test_a_full_server_that_does_not_evict_says_so(self):
        answer = (True, "", None)
        for i in range(0, 1536, 16):
            answer = self.host.set([f"key{i + j}" for j in range(16)], self.views())
            if not answer[0]:
                break
        self.assertIn("ResourceExhausted", answer[1])
        self.assertEqual(self.host.get(["key0"], self.views(16, 1)), (True, "", [True]))

    def test_memory_is_registered_once(self):
        store = cache.Cache(self.server.address, deadline=PATIENT, connect_timeout=PATIENT)
        for _ in range(3):
            self.assertTrue(store.put_from(self.keys, self.views()).ok)
        self.assertEqual(store.areas(), 16)
        # A block that reaches into two others becomes one area with them.
        store.put_from(["key"], [self.pool.view(3)[100:]])
        self.assertEqual(store.areas(), 16)
        self.pool.view(4)[:] = b"x" * BLOCK
        wide = self.pool.view(3, 2 * BLOCK)[BLOCK // 2:3 * BLOCK // 2]
        self.assertEqual(store.put_from(["wide"], [wide]).each, [True])
        self.assertEqual(store.areas(), 15)
        self.assertEqual(store.get_into(["wide"], [self.pool.view(9)]).each, [True])
        self.assertEqual(bytes(self.pool.view(9)), bytes(wide))
        self.assertEqual(store.put_from(self.keys, self.views()).each, [True] * 16)
        self.assertEqual(store.areas(), 15)
        store.close()
        self.assertEqual(store.get_into(["wide"], [self.pool.view(20)]).each, [False])

    def test_idle_threads_sleep(self):
        self.host.exists(self.keys)
        before = time.process_time()
        select.select([], [], [], 0.3)  # what is measured is this time
        self.assertLess(time.process_time() - before, 0.1)

    def test_close_ends_its_threads(self):
        before = set(threading.enumerate())
        host = Host(self.server.address)
        host.set(self.keys, self.views())
        self.assertGreater(set(threading.enumerate()), before)
        host.connector.submit_batch_set(self.keys, self.views())
        host.connector.close()
        host.connector.close()
        self.assertLessEqual(set(threading.enumerate()), before)

    @unittest.skipUnless(os.environ.get("GANNET_COUNT_COPIES"), "the counter is for x86-64")
    def test_get_copies_no_byte_of_a_value(self):
        self.pool.fill(1, 16)
        self.assertTrue(self.host.set(self.keys, self.views())[0])
        into_buffers, to_objects = counted("lmcache_test", "print_copied", self.server.address, *self.keys)
        self.assertLess(into_buffers, BLOCK)  # of 16 * BLOCK
        self.assertGreaterEqual(to_objects, 16 * BLOCK)


def print_copied(address, *keys):
    """Prints how many bytes this process copies to get the blocks into buffers, and as objects."""
    copied = counter()
    host, pool = Host(address), Pool(16)
    views = [pool.view(i) for i in range(16)]
    host.exists(keys[:1])  # connects
    before = copied()
    assert host.get(keys, views) == (True, "", [True] * 16)
    print(copied() - before)
    host.connector.close()
    with gannet.Client(address, deadline=PATIENT, connect_timeout=PATIENT) as client:
        before = copied()
        client.mget(keys)
        print(copied() - before)


if __name__ == "__main__":
    unittest.main()
