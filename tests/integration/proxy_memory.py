"""What gannet-proxy holds for applications that misbehave. A part of proxy_test.py, which starts the programs."""

import os
import socket
import unittest

import redis

MIB = 1 << 20
# The memory of the test's proxy (--buffers). Without a bound it holds ten times as much in each of these tests.
BUFFERS = 16 * MIB
# Under a sanitizer, memory that was given back stays resident for a while.
RESIDENT_MAX = int(os.environ.get("RESIDENT_GROWTH_MAX", 6 * BUFFERS))
LIMIT_S = 60


def resident(pid, what):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(what))


class Memory(unittest.TestCase):
    # of a proxy with --buffers=BUFFERS: set by who derives from this
    port = None
    pid = None

    def setUp(self):
        self.client = redis.Redis(port=self.port, retry_on_timeout=False)
        self.addCleanup(self.client.close)
        self.client.set("small", "v")
        self.client.set("big", b"x" * MIB)
        self.before = resident(self.pid, "VmRSS")

    def buffered(self):
        return int(self.client.info()["gannet_buffer_bytes"])

    def attack(self, count, data):
        """Opens connections that send data as long as it is taken, and read nothing."""
        for _ in range(count):
            attacker = socket.create_connection(("127.0.0.1", self.port))
            self.addCleanup(attacker.close)
            attacker.setblocking(False)
            try:
                attacker.send(data)
            except BlockingIOError:
                pass
            yield attacker

    def check_that_others_go_on(self):
        for _ in range(50):
            self.assertEqual(self.client.get("small"), b"v")
            self.assertLessEqual(self.buffered(), BUFFERS)
        # These must wait until the attackers are closed, and no longer.
        self.assertEqual(len(self.client.get("big")), MIB)
        self.assertTrue(self.client.set("big", b"y" * MIB))
        self.assertLess(resident(self.pid, "VmHWM") - self.before, RESIDENT_MAX)

    def check_that_all_is_given_back(self, attackers):
        for attacker in attackers:
            attacker.close()
        for _ in range(10_000):
            if self.buffered() < MIB:
                break
        self.assertLess(self.buffered(), MIB)
        self.assertLess(resident(self.pid, "VmRSS") - self.before, RESIDENT_MAX)

    def test_who_reads_no_long_values(self):
        attackers = list(self.attack(10, b"GET big\r\n" * 50))
        self.check_that_others_go_on()
        self.check_that_all_is_given_back(attackers)

    def test_who_asks_for_many_values_at_once(self):
        words = b"$3\r\nbig\r\n" * 3
        attackers = list(self.attack(10, b"*4\r\n$4\r\nMGET\r\n" + words))
        self.check_that_others_go_on()
        self.check_that_all_is_given_back(attackers)
        with self.assertRaisesRegex(redis.ResponseError, "answer is too long"):
            self.client.mget(*["big"] * 8)

    def test_who_does_not_finish_long_commands(self):
        attackers = list(self.attack(10, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % (10 * MIB) + b"z" * (MIB // 2)))
        self.check_that_others_go_on()
        self.check_that_all_is_given_back(attackers)

    def test_a_command_that_is_longer_than_all_buffers(self):
        with self.assertRaises((redis.ResponseError, redis.ConnectionError)):
            self.client.set("k", b"z" * (15 * MIB))
        self.assertEqual(self.client.get("small"), b"v")
