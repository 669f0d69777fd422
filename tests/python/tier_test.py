"""gannet.Client and gannet.aio.Client, and the C interface below them, where most values lie on a server's disk.

They see nothing but time. Whether a key exists costs no read of the disk, also through gannet.cache, which the
connectors for LMCache, SGLang and vLLM ask.
"""

import asyncio
import tempfile
import unittest

import gannet
import gannet.aio
import gannet.cache
from server import Server

PATIENT = 30.0  # the machine may be busy
KEYS = [f"key{i}" for i in range(700)]
MEMORY = 8 << 20  # of the server
ROUNDS = 1000


def value_of(key):
    """4 to 68 KiB, of which every byte says whose it is. All together they are three times as long as the memory."""
    number = int(key[3:])
    return (f"{key}." * 20_000)[:4096 + number * 7919 % 65_536].encode()


class TierTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        try:
            cls.server = Server(f"--memory={MEMORY >> 20}M", "--on_full=evict", f"--tier={cls.directory.name}", "--tier_bytes=1G")
        except IndexError:
            raise unittest.SkipTest("no tier may be in the directory for tests, which is on tmpfs") from None
        cls.addClassCleanup(cls.server.kill)
        cls.client = gannet.Client(cls.server.address, deadline=PATIENT, connect_timeout=PATIENT)
        cls.addClassCleanup(cls.client.close)

    def setUp(self):
        self.client.flush()
        for _ in range(ROUNDS):  # a disk that is busy writes less than is put, so this goes in steps
            there = self.there()
            if sum(len(value_of(key)) for key in there) > MEMORY + MEMORY // 4 and self.stats()["items_on_disk"] > 50:
                return
            for key in sorted(set(KEYS) - set(there))[:20]:
                self.client.put(key, value_of(key))
        self.fail("too little comes to the disk")

    def stats(self):
        return self.client.stats()[0]

    def reads(self):
        return self.stats()["tier_reads"]

    def there(self):
        """Returns the keys that exist: some were evicted before they were written."""
        return [key for key, there in zip(KEYS, self.client.mexists(KEYS)) if there]

    def check_that_few_went(self, there, later):
        """Without a PUT none comes; those that were not written in time may go."""
        self.assertLessEqual(set(later), set(there))
        self.assertGreater(len(later), 0.9 * len(there))

    def check(self, values):
        """Values by key. One that is missing went meanwhile."""
        self.assertTrue(values)
        for key, value in values.items():
            if value is None:
                self.assertFalse(self.client.exists(key), key)
            else:
                self.assertTrue(value == value_of(key), key)

    def test_whether_a_key_exists_costs_no_read(self):
        before = self.reads()
        there = self.there()
        self.check_that_few_went(there, [key for key in there if self.client.exists(key)])
        cache = gannet.cache.Cache(self.server.address, device="soft", deadline=PATIENT, connect_timeout=PATIENT)
        self.addCleanup(cache.close)
        found = cache.exists(KEYS)
        self.assertEqual(found.failed, 0)
        self.check_that_few_went(there, [key for key, there in zip(KEYS, found.each) if there])
        again = cache.put_missing(there, [bytearray(value_of(key)) for key in there])
        self.assertEqual((all(again.each), again.failed), (True, 0))
        self.assertEqual(self.reads(), before)

    def test_gets_of_all_kinds(self):
        def into(key):
            buffer = bytearray(1 << 17)
            info = self.client.get_into(key, buffer)
            return None if info is None else bytes(buffer[:info.size])

        def changed(key):
            was_changed, item = self.client.get_if_changed(key, 1)
            self.assertTrue(was_changed)
            return None if item is None else item.value

        memory = self.client.register(bytearray(1 << 17))
        self.addCleanup(memory.close)

        def into_memory(key):
            info = self.client.mget_into([(key, memory)])[0]
            return None if info is None else bytes(memory.view[:info.size])

        for get in (self.client.get, lambda key: getattr(self.client.gets(key), "value", None), into, changed, into_memory):
            before = self.reads()
            self.check({key: get(key) for key in self.there()})
            self.assertGreater(self.reads(), before, "none was on the disk")
        before = self.reads()
        for first in range(0, len(KEYS), 128):
            keys = KEYS[first:first + 128]
            self.check(dict(zip(keys, self.client.mget(keys))))
        self.assertGreater(self.reads(), before)

    def test_gets_beside_each_other(self):
        async def gets():
            async with gannet.aio.Client(self.server.address, device="soft", deadline=PATIENT, connect_timeout=PATIENT) as client:
                for first in range(0, len(KEYS), 64):
                    keys = KEYS[first:first + 64]
                    self.check(dict(zip(keys, await client.mget(keys))))
                    values = await asyncio.gather(*(client.get(key) for key in keys))
                    self.check(dict(zip(keys, values)))
                    self.assertEqual(await client.mexists(keys), [value is not None for value in values])

        before = self.reads()
        asyncio.run(gets())
        self.assertGreater(self.reads(), before)

    def test_touch_conditions_and_deletes_cost_no_read(self):
        before = self.reads()
        there = self.there()
        versions = {}
        for key in there[:200]:
            if self.client.touch(key, 3600):
                versions[key] = None
        self.assertGreater(len(versions), 100)
        for key in there[200:250]:
            self.assertRaises(gannet.AlreadyExists, self.client.add, key, "new")
            self.assertRaises(gannet.FailedPrecondition, self.client.delete, key, if_version=1)
        for key in there[250:260]:
            self.client.delete(key)
            self.assertIsNone(self.client.get(key))
        self.assertEqual(self.reads(), before)
        for key in versions:
            item = self.client.gets(key)
            if item is not None:
                self.assertTrue(item.value == value_of(key), key)
                self.assertGreater(item.info.ttl, 3000)
        self.assertGreater(self.reads(), before)

    def test_appends_bring_the_value_back(self):
        before = self.reads()
        whole = 0
        for key in self.there():
            self.client.append(key, b"+")
            value = self.client.get(key)
            if value == b"+":  # it went before
                continue
            self.assertTrue(value == value_of(key) + b"+", key)
            whole += 1
        self.assertGreater(whole, 50)
        self.assertGreater(self.reads(), before)

    def test_walks_show_what_is_on_the_disk_and_read_none(self):
        before = self.reads()
        there = self.there()
        items = gannet.walk(self.server.address, device="soft", deadline=PATIENT, connect_timeout=PATIENT)
        sizes = {item.key.decode(): item.info.size for item in items}
        self.assertEqual(sizes, {key: len(value_of(key)) for key in sizes})
        self.check_that_few_went(there, sizes)
        gannet.hot_keys(self.server.address, device="soft", deadline=PATIENT, connect_timeout=PATIENT)
        self.assertEqual(self.reads(), before)


if __name__ == "__main__":
    unittest.main()
