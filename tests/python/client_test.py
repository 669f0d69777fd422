"""gannet.Client against a server."""

import array
import gc
import os
import threading
import time
import unittest
from unittest import mock

import gannet
from gannet._capi import ffi
from gannet.arguments import split_servers
from server import DROPS, Server, descriptors, left_open

PATIENT = 30.0  # the machine may be busy


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.client = gannet.Client(cls.server.address, deadline=PATIENT, connect_timeout=PATIENT)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.kill()

    def setUp(self):
        self.client.flush()

    def test_gets_what_was_put(self):
        version = self.client.put("key", b"value", ttl=3600, flags=7)
        self.assertEqual(self.client.get("key"), b"value")
        item = self.client.gets("key")
        self.assertEqual((item.value, item.version, item.info.flags), (b"value", version, 7))
        self.assertGreater(item.info.ttl, 3000)
        self.assertIsNone(self.client.get("none"))
        self.assertEqual(self.client.get("none", b"default"), b"default")
        self.assertIsNone(self.client.gets("none"))

    def test_keys_and_values_are_any_bytes(self):
        for key in (b"\0", b"a\0b", bytes(range(250)), "schlüssel", bytearray(b"array"), memoryview(b"view")):
            self.client.put(key, b"\0\xff" * 10)
            self.assertEqual(self.client.get(key), b"\0\xff" * 10)
        for value in (b"", "text", bytearray(b"array"), memoryview(b"view"), array.array("d", [1.5, 2.5])):
            self.client.put("key", value)
            self.assertEqual(self.client.get("key"), value.encode() if isinstance(value, str) else bytes(value))

    def test_values_of_every_length(self):
        for size in (0, 1, 4095, 4096, 4097, 1 << 20):
            self.client.put("key", os.urandom(1) * size)
            self.assertEqual(len(self.client.get("key")), size)

    def test_conditions(self):
        version = self.client.add("key", "one")
        self.assertRaises(gannet.AlreadyExists, self.client.add, "key", "two")
        self.assertRaises(gannet.NotFound, self.client.replace, "none", "two")
        self.assertRaises(gannet.FailedPrecondition, self.client.put, "key", "two", if_version=version + 1)
        self.assertRaises(gannet.FailedPrecondition, self.client.delete, "key", if_version=version + 1)
        self.assertTrue(self.client.delete("key", if_version=version))
        self.assertFalse(self.client.delete("key"))

    def test_changes_in_place(self):
        self.client.append("text", "b")
        self.client.prepend("text", b"a")
        self.assertEqual(self.client.get_and_touch("text", 60).value, b"ab")
        self.assertTrue(self.client.touch("text", 60))
        self.assertFalse(self.client.touch("none", 60))
        self.assertEqual(self.client.incr("n", 5, initial=10), 15)
        self.assertEqual(self.client.decr("n"), 14)
        self.assertRaises(gannet.FailedPrecondition, self.client.incr, "text")
        self.assertRaises(gannet.OutOfRange, self.client.incr, "n", 2**63 - 1)
        self.assertRaises(OverflowError, self.client.incr, "n", 2**63)

    def test_many_at_once(self):
        versions = self.client.mput({f"k{i}": str(i) for i in range(200)})
        self.assertEqual(len(set(versions)), 200)
        values = self.client.mget([f"k{i}" for i in range(201)])
        self.assertEqual(values, [str(i).encode() for i in range(200)] + [None])
        self.assertEqual(self.client.mget([]), [])

    def test_exists_and_deletes_many_at_once(self):
        keys = [f"k{i}" for i in range(200)]
        self.client.mput({key: b"v" * 5000 for key in keys})
        self.assertEqual(self.client.mexists(["none"] + keys), [False] + [True] * 200)
        self.assertEqual(self.client.mdelete(keys[:2] + ["none"]), [True, True, False])
        self.assertFalse(self.client.exists(keys[0]))
        self.assertTrue(self.client.exists(keys[2]))
        self.assertEqual(self.client.mexists([]), [])
        found = self.client.mexists([keys[2], ""], return_errors=True)
        self.assertIs(found[0], True)
        self.assertIsInstance(found[1], gannet.InvalidArgument)
        self.assertRaises(gannet.InvalidArgument, self.client.mexists, [keys[2], ""])

    def test_reads_only_what_changed(self):
        self.assertEqual(self.client.get_if_changed("key", 1), (True, None))
        for value in (b"", b"short", b"v" * 5000):
            version = self.client.put("key", value)
            for _ in range(2):
                self.assertEqual(self.client.get_if_changed("key", version), (False, None))
                changed, item = self.client.get_if_changed("key", 1)
                self.assertTrue(changed)
                self.assertEqual((item.value, item.version), (value, version))

    def test_reads_into_a_buffer(self):
        self.client.put("key", b"0123456789")
        buffer = bytearray(16)
        self.assertEqual(self.client.get_into("key", memoryview(buffer)[2:]).size, 10)
        self.assertEqual(bytes(buffer), b"\0\0" + b"0123456789" + b"\0\0\0\0")
        # A buffer that is too short gets the beginning, and the whole length is known.
        short = bytearray(4)
        self.assertEqual(self.client.get_into("key", short).size, 10)
        self.assertEqual(short, b"0123")
        numbers = array.array("q", [0])
        self.client.put("number", array.array("q", [42]))
        self.client.get_into("number", numbers)
        self.assertEqual(numbers[0], 42)
        self.assertIsNone(self.client.get_into("none", short))
        self.assertRaises((TypeError, BufferError), self.client.get_into, "key", b"read only")

    def test_registered_memory(self):
        size = 100_000
        with self.client.allocate(2 * size) as memory:
            memory.view[:size] = b"a" * size
            memory.view[size:2 * size] = b"b" * size
            self.client.put_from("long", [memory[size:2 * size], memory[:size]])
            mine = bytearray(2 * size)
            with self.client.register(mine, remote_read=False) as target:
                self.assertEqual(self.client.get_into("long", target).size, 2 * size)
                self.assertEqual(mine, b"b" * size + b"a" * size)
                found = self.client.mget_into([("long", target[:size]), ("none", target[size:])])
                self.assertEqual(found[0].size, 2 * size)
                self.assertIsNone(found[1])
                asked = [("", target[:size]), ("long", target[:size])]
                self.assertRaises(gannet.InvalidArgument, self.client.mget_into, asked)
                found = self.client.mget_into(asked, return_errors=True)
                self.assertIsInstance(found[0], gannet.InvalidArgument)
                self.assertEqual(found[1].size, 2 * size)
            versions = self.client.mput_from([("a", memory[:size]), ("b", [memory[size:2 * size], memory[:size]])])
            self.assertEqual(self.client.gets("a").version, versions[0])
            self.assertEqual(self.client.get("b"), b"b" * size + b"a" * size)
            results = self.client.mput_from([("a", memory[:size]), ("c", memory[:size])], if_absent=True,
                                            return_errors=True)
            self.assertIsInstance(results[0], gannet.AlreadyExists)
            self.assertEqual(self.client.gets("c").version, results[1])
        self.assertRaises(ValueError, self.client.put_from, "long", memory)

    def test_memory_is_freed_when_nothing_of_it_is_left(self):
        memory = self.client.allocate(8 << 20)
        view = memory.view
        address = int(ffi.cast("uintptr_t", ffi.from_buffer(view)))
        del memory
        gc.collect()
        self.assertTrue(is_mapped(address))
        view[-1] = 1
        del view
        gc.collect()
        self.assertFalse(is_mapped(address))

    def test_registered_memory_that_is_dropped_frees_its_buffer(self):
        mine = bytearray(100_000)
        memory = self.client.register(mine)
        self.assertRaises(BufferError, mine.append, 1)
        del memory
        gc.collect()
        mine.append(1)

    def test_locks_fence_writes(self):
        with gannet.Client(self.server.address, deadline=PATIENT) as other:
            with self.client.lock("key", lease=60) as lock:
                self.assertIsNone(other.try_lock("key"))
                self.assertRaises(gannet.DeadlineExceeded, other.lock, "key", timeout=0.01)
                version = self.client.put("key", "mine", if_version=0, lock=lock)
                lock.extend(30)
                self.assertEqual([held.word for held in self.client.locks()], [lock.word])
            lock, item = other.lock_and_get("key")
            self.assertEqual((lock.key, item.value, item.version), (b"key", b"mine", version))
            self.assertTrue(self.client.break_lock("key"))
            self.assertFalse(self.client.break_lock("key"))
            self.assertRaises(gannet.LockLost, other.put, "key", "late", if_version=version, lock=lock)
            self.assertRaises(gannet.LockLost, lock.unlock)

    def test_a_list_of_servers_is_split_at_commas_but_a_group_takes_the_rest(self):
        self.assertEqual(split_servers("a:1, b:2,"), ["a:1", "b:2"])
        self.assertEqual(split_servers("a:1,cluster:b:2,c:3"), ["a:1", "cluster:b:2,c:3"])
        self.assertEqual(split_servers("cluster:7471,b"), ["cluster:7471", "b"])

    def test_wrong_arguments(self):
        self.assertRaises(gannet.InvalidArgument, self.client.get, "")
        self.assertRaises(ValueError, self.client.put, "k" * 251, "v")
        self.assertRaises(TypeError, self.client.get, None)
        self.assertRaises(TypeError, self.client.put, "key", 5)
        self.assertRaises(TypeError, self.client.put, "key", None)
        self.assertRaises(ValueError, self.client.put, "key", "v", ttl=-1)
        with self.assertRaisesRegex(gannet.InvalidArgument, "of 251 bytes"):
            self.client.mget(["k" * 251])
        self.assertRaises(gannet.InvalidArgument, gannet.Client, "127.0.0.1:notaport")
        self.assertRaises(gannet.InvalidArgument, gannet.Client, self.server.address, rails=9)
        self.assertRaises(ValueError, gannet.Client, self.server.address, wait="never")

    def test_tells_of_servers(self):
        self.client.put("key", "value")
        self.client.ping()
        (stats,) = self.client.stats()
        self.assertEqual(stats["items"], 1)
        (server,) = self.client.servers()
        self.assertEqual((server["endpoint"], server["connected"]), (self.server.address, True))
        self.assertEqual(server["rails"], [])

    def test_tells_of_rails(self):
        with mock.patch.dict(os.environ, SOFTVERBS_DEVICES="2"):
            server = Server("--listen=127.0.0.1:0,127.0.1.1:0")
        self.addCleanup(server.kill)
        with gannet.Client(server.address) as client:
            end = time.monotonic() + 60
            while len(client.servers()[0]["rails"]) < 2 and time.monotonic() < end:
                client.ping()
            first, second = client.servers()[0]["rails"]
            self.assertEqual((first.address, first.connected, first.up), (server.address, True, True))
            self.assertGreater(first.works, 0)
            self.assertTrue(second.address.startswith("127.0.1.1:"))

    def test_answers_from_copies_of_leased_items(self):
        server = Server("--item_lease_ms=100")
        self.addCleanup(server.kill)
        keys = [f"popular{i}" for i in range(8)]
        with gannet.Client(server.address, near_cache_bytes=1 << 20) as client:
            for key in keys:
                client.put(key, f"value of {key}")
            end = time.monotonic() + 150  # some seconds, if the machine does nothing else
            while client.servers()[0]["near_cache_answers"] < 1000 and time.monotonic() < end:
                self.assertEqual(client.mget(keys * 50), [f"value of {key}".encode() for key in keys * 50])
            (info,) = client.servers()
            self.assertGreaterEqual(info["near_cache_answers"], 1000)
            self.assertEqual(info["near_cache_items"], len(keys))
            self.assertGreater(info["near_cache_reads"], 0)
            # A client that pauses finds its copies there, and their leases over.
            for _ in range(100):
                time.sleep(0.2)
                client.get(keys[0])
                if client.servers()[0]["near_cache_over"] > 0:
                    break
            else:
                self.fail("no get met a copy whose lease was over")

    def test_threads_share_a_client(self):
        wrong = []

        def use(thread):
            for i in range(200):
                self.client.put(f"{thread}/{i}", f"{thread}:{i}")
                if self.client.get(f"{thread}/{i}") != f"{thread}:{i}".encode():
                    wrong.append((thread, i))

        threads = [threading.Thread(target=use, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_other_threads_run_while_one_waits(self):
        """The thread that holds the lock can only run if the one that waits for it has released Python."""
        lock = self.client.lock("key")
        with gannet.Client(self.server.address, deadline=PATIENT) as other:
            waiting = threading.Thread(target=lambda: other.lock("key").unlock())
            waiting.start()
            lock.unlock()
            waiting.join()

    def test_a_closed_client_refuses_calls(self):
        client = gannet.Client(self.server.address)
        client.close()
        client.close()
        self.assertRaises(ValueError, client.get, "key")
        self.assertRaises(ValueError, client.ping)

    def test_a_client_that_is_dropped_is_closed_with_a_warning(self):
        for _ in range(DROPS):
            before = descriptors()
            client = gannet.Client(self.server.address, deadline=PATIENT, connect_timeout=PATIENT)
            opened = descriptors() - before
            self.assertTrue(opened)
            with self.assertWarns(ResourceWarning):
                del client
                gc.collect()
            if not (left := left_open(opened)):
                break
        self.assertEqual(left, set())

    def test_wrong_options_make_no_noise(self):
        with mock.patch("sys.unraisablehook") as noise:
            self.assertRaises(TypeError, gannet.Client, wrong=1)
            gc.collect()
        noise.assert_not_called()

    def test_the_first_error_of_many_keys_has_its_text(self):
        found = self.client.mexists(["none", "k" * 251, ""], return_errors=True)
        self.assertIs(found[0], False)
        self.assertIn("of 251 bytes", str(found[1]))
        self.assertIsInstance(found[2], gannet.InvalidArgument)

    def test_a_server_that_dies(self):
        server = Server()
        with gannet.Client(server.address, deadline=PATIENT) as client:
            client.put("key", "value")
            server.kill()
            self.assertRaises(gannet.Unavailable, client.ping)
            self.assertRaises(ConnectionError, client.get, "key")
        with self.assertRaisesRegex(gannet.Unavailable, server.address):
            gannet.Client(server.address)


def is_mapped(address):
    """Whether this process has memory at that address."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        areas = [[int(end, 16) for end in line.split()[0].split("-")] for line in file]
    return any(start <= address < end for start, end in areas)


if __name__ == "__main__":
    unittest.main()
