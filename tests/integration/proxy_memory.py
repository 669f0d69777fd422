"""What gannet-proxy holds for applications that misbehave. A part of proxy_test.py, which starts the programs."""

import os
import socket
import threading
import unittest

import redis

MIB = 1 << 20
# The memory of the test's proxy (--buffers). Without a bound it holds ten times as much in each of these tests.
BUFFERS = 16 * MIB
# Two threads that ask at the same time may each have a small request too much (Memory::kSmallMax).
SMALL = 2 * (128 << 10)
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
    path = None  # of its UNIX socket
    log = None

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
            self.assertLessEqual(self.buffered(), BUFFERS + SMALL)
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

    # --- replies that are not read yet

    def send_all_then_read(self, connection, commands, reply):
        """Sends everything while nothing is read, as libraries do with a pipeline, then reads."""
        self.addCleanup(connection.close)
        connection.settimeout(LIMIT_S)
        connection.sendall(commands)
        got = 0
        while got < len(reply):
            piece = connection.recv(1 << 20)
            self.assertEqual(piece, reply[got:got + len(piece)])
            got += len(piece)

    def test_a_pipeline_that_is_sent_whole_before_it_is_read(self):
        # Commands and replies are more than the sockets take, and the replies are less than --buffers.
        self.client.set("some", "v" * 100)
        commands = b"*2\r\n$3\r\nGET\r\n$4\r\nsome\r\n" * 110_000
        reply = (b"$100\r\n" + b"v" * 100 + b"\r\n") * 110_000
        by_path = socket.socket(socket.AF_UNIX)
        by_path.connect(self.path)
        self.send_all_then_read(by_path, commands, reply)
        self.send_all_then_read(socket.create_connection(("127.0.0.1", self.port)), commands, reply)

    def test_a_reader_of_more_than_all_buffers_is_served(self):
        reply = b"$%d\r\n" % MIB + b"x" * MIB + b"\r\n"
        connection = socket.create_connection(("127.0.0.1", self.port))
        self.addCleanup(connection.close)
        connection.settimeout(LIMIT_S)
        sender = threading.Thread(target=connection.sendall, args=(b"GET big\r\n" * 100,))
        sender.start()
        with connection.makefile("rb") as replies:
            for _ in range(100):
                self.assertEqual(replies.read(len(reply)), reply)
        sender.join()

    def test_who_never_reads_is_closed_once_all_buffers_are_used(self):
        connection = socket.create_connection(("127.0.0.1", self.port))
        self.addCleanup(connection.close)
        connection.settimeout(LIMIT_S)
        with self.assertRaises(ConnectionError):
            while True:
                connection.sendall(b"GET big\r\n" * 100_000)
        with open(self.log, encoding="utf-8") as said:
            self.assertRegex(said.read(), "--buffers is used up: closing a connection \\(idle, id")
        self.check_that_all_is_given_back([])

    # --- what a command brings

    def test_who_queues_long_transactions(self):
        # Each queues 10 MiB, and they wait for memory that none of them gives back.
        data = b"MULTI\r\n" + (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$30000\r\n" + b"z" * 30_000 + b"\r\n") * 350
        threads, attackers = [], [socket.create_connection(("127.0.0.1", self.port)) for _ in range(10)]

        def send(attacker):
            try:
                attacker.sendall(data)
            except OSError:
                pass  # closed, because others wait

        for attacker in attackers:
            threads.append(threading.Thread(target=send, args=(attacker,)))
            threads[-1].start()
        for thread in threads:
            thread.join(LIMIT_S)
        self.check_that_others_go_on()
        self.check_that_all_is_given_back(attackers)

    def test_values_that_commands_make(self):
        for i in range(10):
            self.client.setrange(f"made{i}", MIB, "x")
        attackers = list(self.attack(10, b"".join(b"SETRANGE made%d 1500000 x\r\nCOPY made%d c REPLACE\r\n" % (i, i)
                                                  for i in range(10))))
        self.check_that_others_go_on()
        self.check_that_all_is_given_back(attackers)
        with self.assertRaisesRegex(redis.ResponseError, "more memory than --buffers allows"):
            self.client.setrange("longer", BUFFERS, "x")
        for i in range(10):
            self.client.delete(f"made{i}", "c")

    def test_more_keys_than_a_command_asks_for_at_once(self):
        keys = [f"k{i}" for i in range(70_000)]
        self.client.mset(dict.fromkeys(keys[:30_000], "v"))
        self.assertEqual(self.client.mget(keys), [b"v"] * 30_000 + [None] * 40_000)
        self.assertEqual((self.client.exists(*keys), self.client.delete(*keys), self.client.exists(*keys)), (30_000, 30_000, 0))
