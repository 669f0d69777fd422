"""What gannet-proxy's applications see of values that lie on a server's disk: nothing but time. A part of proxy_test.py,
which starts the programs."""

import socket
import struct
import unittest

import proxy_binary
import pymemcache.client.base
import redis

KEYS = [f"key{i}" for i in range(500)]
MEMORY = 8 << 20  # of the server
ROUNDS = 1000


def value_of(key):
    """4 to 68 KiB, of which every byte says whose it is. All together they are twice as long as the memory."""
    return (f"{key}." * 20_000)[:4096 + int(key[3:]) * 7919 % 65_536].encode()


class Tier(unittest.TestCase):
    # of a proxy whose server has a tier: set by who derives from this
    port = None
    # Returns a statistic of that server.
    statistic = None

    def setUp(self):
        self.redis = redis.Redis(port=self.port, retry_on_timeout=False)
        self.addCleanup(self.redis.close)
        self.memcached = pymemcache.client.base.Client(("127.0.0.1", self.port))
        self.addCleanup(self.memcached.close)
        self.fill()
        self.before = self.reads()

    def fill(self):
        """A disk that is busy writes less than is put, so this goes in steps."""
        for _ in range(ROUNDS):
            there = self.there()
            if sum(len(value_of(key)) for key in there) > MEMORY + MEMORY // 4 and self.statistic("items_on_disk") > 50:
                return
            for key in sorted(set(KEYS) - set(there))[:20]:
                self.redis.set(key, value_of(key))
        self.fail("too little comes to the disk")

    def reads(self):
        return self.statistic("tier_reads")

    def there(self):
        """Returns the keys that exist: some were evicted before they were written."""
        with self.redis.pipeline(transaction=False) as asked:
            for key in KEYS:
                asked.exists(key)
            return [key for key, there in zip(KEYS, asked.execute()) if there]

    def check(self, key, value):
        """One that is missing went meanwhile."""
        if value is None:
            self.assertFalse(self.redis.exists(key), key)
        else:
            self.assertTrue(value == value_of(key), key)

    def test_existence_times_and_deletes_cost_no_read(self):
        there = self.there()
        self.assertLessEqual(self.redis.exists(*there), len(there))
        self.assertGreater(self.redis.exists(*there), 0.9 * len(there))
        touched = [key for key in there[:100] if self.redis.expire(key, 1000)]
        touched += [key for key in there[100:200] if self.memcached.touch(key, 1000)]
        self.assertGreater(len(touched), 150)
        for key in touched:
            self.assertIn(self.redis.ttl(key), [-2, *range(900, 1001)])  # -2: it went
        self.assertGreater(self.redis.delete(*there[200:220]), 10)
        self.assertGreater(len([key for key in there[220:240] if not self.redis.set(key, b"new", nx=True)]), 10)
        self.assertEqual(self.reads(), self.before)
        for key in touched:
            self.check(key, self.redis.get(key))
        self.assertGreater(self.reads(), self.before)

    def test_walks_find_them(self):
        there = self.there()
        walked = [key.decode() for key in self.redis.scan_iter(count=1000)]
        self.assertLessEqual(set(walked), set(there))
        self.assertGreater(len(walked), 0.9 * len(there))
        self.assertEqual(self.reads(), self.before)

    def test_redis_gets(self):
        there = self.there()
        for first in range(0, len(there), 50):
            keys = there[first:first + 50]
            for key, value in zip(keys, self.redis.mget(keys)):
                self.check(key, value)
        self.assertGreater(self.reads(), self.before)
        for key in there[:50]:
            if not self.redis.exists(key):
                continue
            self.assertIn(self.redis.strlen(key), (0, len(value_of(key))))
            self.assertIn(self.redis.getrange(key, 10, 19), (b"", value_of(key)[10:20]))

    def test_redis_changes(self):
        whole = 0
        for key in self.there():
            length = self.redis.append(key, b"+")
            if length == 1:  # it went before
                continue
            self.assertEqual(length, len(value_of(key)) + 1)
            self.assertEqual(self.redis.getset(key, b"new"), value_of(key) + b"+")
            self.assertEqual(self.redis.get(key), b"new")
            whole += 1
        self.assertGreater(whole, 50)
        self.assertGreater(self.reads(), self.before)

    def test_memcached_gets_and_changes(self):
        there = self.there()
        for first in range(0, len(there), 50):
            for key, value in self.memcached.get_many(there[first:first + 50]).items():
                self.check(key, value)
        self.assertGreater(self.reads(), self.before)
        changed = 0
        for key in there[:100]:
            value, unique = self.memcached.gets(key)
            self.check(key, value)
            if value is None:
                continue
            self.assertFalse(self.memcached.cas(key, b"x", str(int(unique) + 1)))
            if self.memcached.append(key, b"+", noreply=False):
                self.assertTrue(self.memcached.get(key) in (value_of(key) + b"+", None), key)
                self.assertFalse(self.memcached.cas(key, b"x", unique), "it was changed")
            value, unique = self.memcached.gets(key)
            if value is not None and self.memcached.cas(key, b"new", unique):
                self.assertEqual(self.memcached.get(key), b"new")
                changed += 1
        self.assertGreater(changed, 50)

    def ask_meta(self, line):
        """Returns the words of the answer to mg, and the value that came with it."""
        self.meta.sendall(line + b"\r\n")
        words = self.meta_file.readline().split()
        value = self.meta_file.read(int(words[1]) + 2)[:-2] if words[0] == b"VA" else None
        return words, value

    def test_memcached_meta(self):
        there = self.there()
        self.meta = socket.create_connection(("127.0.0.1", self.port))
        self.addCleanup(self.meta.close)
        self.meta.settimeout(proxy_binary.LIMIT_S)
        self.meta_file = self.meta.makefile("rb")
        self.addCleanup(self.meta_file.close)
        told = 0
        for key in there[:100]:  # what wants no value
            words, _ = self.ask_meta(f"mg {key} s f t k".encode())
            if words == [b"EN"]:
                continue
            self.assertEqual(words, [b"HD", b"s%d" % len(value_of(key)), b"f0", b"t-1", b"k" + key.encode()])
            told += 1
        self.assertGreater(told, 50)
        self.assertEqual(self.reads(), self.before)
        whole = 0
        for key in there[:100]:
            words, value = self.ask_meta(f"mg {key} v f c T1000 t".encode())
            if words == [b"EN"]:
                continue
            self.assertEqual((words[2], words[3][:1]), (b"f0", b"c"), key)
            self.assertIn(int(words[4][1:]), range(900, 1001))
            self.assertTrue(value == value_of(key), key)
            self.assertIn(self.redis.ttl(key), [-2, *range(900, 1001)])
            whole += 1
        self.assertGreater(whole, 50)
        self.assertGreater(self.reads(), self.before)

    def test_memcached_binary(self):
        peer = proxy_binary.Binary()
        peer.port = self.port
        peer.connect()
        self.addCleanup(peer.doCleanups)
        missing, whole = 1, 0
        for key in (key.encode() for key in self.there()[:100]):
            status = peer.ask(0x1C, key, struct.pack(">I", 1000))[0]  # touch
            self.assertIn(status, (0, missing))
            status, extras, name, value, cas, _ = peer.ask(0x0C, key)  # getk
            if status == missing:
                continue
            self.assertEqual((status, extras, name), (0, bytes(4), key))
            self.assertTrue(value == value_of(key.decode()), key)
            if peer.ask(0x0E, key, value=b"+", cas=cas)[0] == 0:  # append
                self.assertTrue(peer.ask(0x00, key)[3] in (value + b"+", b"Not found"), key)
            whole += 1
        self.assertGreater(whole, 50)
        self.assertGreater(self.reads(), self.before)
