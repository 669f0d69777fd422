"""memcached's binary protocol at gannet-proxy. A part of proxy_test.py, which starts the programs."""

import socket
import struct
import subprocess
import unittest

LIMIT_S = 60
NO_INITIAL = 0xFFFFFFFF


class Binary(unittest.TestCase):
    # of the proxy: set by who derives from this
    port = None

    def setUp(self):
        self.connect()
        self.assertEqual(self.ask(0x08)[0], 0)  # flush

    def connect(self):
        self.socket = socket.create_connection(("127.0.0.1", self.port))
        self.socket.settimeout(LIMIT_S)
        self.addCleanup(self.socket.close)
        self.file = self.socket.makefile("rb")
        self.addCleanup(self.file.close)

    def send(self, opcode, key=b"", extras=b"", value=b"", cas=0, opaque=0):
        body = extras + key + value
        self.socket.sendall(struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0, len(body), opaque,
                                        cas) + body)

    def take(self):
        """(status, extras, key, value, cas, opaque)"""
        head = self.file.read(24)
        magic, _, key, extras, _, status, body, opaque, cas = struct.unpack(">BBHBBHIIQ", head)
        self.assertEqual(magic, 0x81)
        rest = self.file.read(body)
        return status, rest[:extras], rest[extras:extras + key], rest[extras + key:], cas, opaque

    def ask(self, *words, **more):
        self.send(*words, **more)
        return self.take()

    def set(self, key, value, opcode=0x01, flags=0, time=0, cas=0):
        return self.ask(opcode, key, struct.pack(">II", flags, time), value, cas)

    def count(self, key, delta, initial=0, time=0, opcode=0x05):
        return self.ask(opcode, key, struct.pack(">QQI", delta, initial, time))

    def test_storage_and_retrieval(self):
        self.assertEqual(self.ask(0x00, b"a", opaque=77)[::5], (1, 77))
        status, _, _, _, cas, _ = self.set(b"a", b"one", flags=9)
        self.assertEqual(status, 0)
        self.assertEqual(self.ask(0x00, b"a"), (0, struct.pack(">I", 9), b"", b"one", cas, 0))
        self.assertEqual(self.ask(0x0C, b"a")[2:4], (b"a", b"one"))
        self.assertEqual((self.set(b"a", b"x", 0x02)[0], self.set(b"b", b"x", 0x03)[0]), (2, 1))
        self.assertEqual((self.set(b"a", b"x", cas=cas + 1)[0], self.set(b"a", b"two", cas=cas)[0]), (2, 0))
        self.assertEqual(self.set(b"none", b"x", cas=5)[0], 1)
        self.assertEqual((self.ask(0x0E, b"a", value=b"!")[0], self.ask(0x0F, b"a", value=b"?")[0]), (0, 0))
        self.assertEqual((self.ask(0x00, b"a")[3], self.ask(0x0E, b"none", value=b"!")[0]), (b"?two!", 5))
        self.assertEqual((self.ask(0x04, b"a")[0], self.ask(0x04, b"a")[0]), (0, 1))
        long = bytes(3 << 20)
        self.assertEqual((self.set(b"long", long)[0], self.ask(0x00, b"long")[3] == long), (0, True))

    def test_counters(self):
        self.assertEqual(self.count(b"n", 5, time=NO_INITIAL)[0], 1)
        for delta, opcode, sum_ in ((5, 0x05, 40), (2, 0x05, 42), (50, 0x06, 0)):
            self.assertEqual(struct.unpack(">Q", self.count(b"n", delta, 40, 0, opcode)[3]), (sum_,))
        self.set(b"word", b"x")
        self.assertEqual(self.count(b"word", 1)[0], 6)

    def test_a_cas_unique_without_an_item(self):
        self.assertEqual(self.ask(0x0E, b"none", value=b"!", cas=7)[0], 5)
        status, _, _, number, _, _ = self.ask(0x05, b"new", struct.pack(">QQI", 1, 40, 0), cas=7)
        self.assertEqual((status, struct.unpack(">Q", number)), (0, (40,)))
        self.assertEqual(self.ask(0x05, b"new", struct.pack(">QQI", 1, 40, 0), cas=7)[0], 2)

    def test_times_to_live(self):
        self.set(b"a", b"x")
        self.assertEqual(self.ask(0x1C, b"a", struct.pack(">I", 100))[0], 0)
        self.assertEqual(self.ask(0x1D, b"a", struct.pack(">I", 1_000_000_000))[3], b"x")  # long past
        self.assertEqual((self.ask(0x00, b"a")[0], self.ask(0x1C, b"a", struct.pack(">I", 100))[0]), (1, 1))

    def test_quiet_commands_tell_only_what_matters(self):
        self.send(0x11, b"a", bytes(8), b"1")       # setq
        self.send(0x12, b"a", bytes(8), b"2", opaque=3)  # addq: exists
        self.send(0x09, b"none")                    # getq: a miss
        self.send(0x0D, b"a", opaque=4)             # getkq
        self.send(0x15, b"a", struct.pack(">QQI", 1, 0, 0))  # incrementq
        self.send(0x0A, opaque=5)                   # noop
        answers = [self.take() for _ in range(3)]
        self.assertEqual([(one[0], one[5]) for one in answers], [(2, 3), (0, 4), (0, 5)])
        self.assertEqual((answers[1][2:4], self.ask(0x00, b"a")[3]), ((b"a", b"1"), b"2"))

    def test_the_others(self):
        self.assertIn(b"gannet", self.ask(0x0B)[3])
        self.send(0x10)
        stats = dict(iter(lambda: self.take()[2:4], (b"", b"")))
        self.assertEqual(stats[b"curr_items"], b"0")
        self.assertEqual(self.ask(0x21, b"PLAIN")[0], 0x81)  # SASL
        self.assertEqual(self.ask(0x00, b"k" * 251)[0], 4)
        self.assertEqual(self.ask(0x01, b"a", b"", b"no extras")[0], 4)
        self.assertEqual(self.ask(0x07)[0], 0)
        self.assertEqual(self.file.read(1), b"")

    def test_a_value_that_is_too_long_is_skipped(self):
        self.assertEqual(self.set(b"a", bytes((64 << 20) + 1))[0], 3)
        self.assertEqual(self.ask(0x0A)[0], 0)

    def test_wrong_bytes_end_the_connection(self):
        self.socket.sendall(b"get a\r\n" + bytes(24))
        self.assertEqual(self.file.read(1), b"")


def check_sasl(test, port):
    """SASL at a proxy with passwords: ann's is `hers`, the default user's is `secret`."""
    peer = Binary()
    peer.port = port
    peer.connect()
    test.addCleanup(peer.doCleanups)
    refused = 0x20
    test.assertEqual((peer.ask(0x00, b"a")[0], peer.ask(0x0B)[0], peer.ask(0x20)[3]), (refused, 0, b"PLAIN"))
    for mechanism, data in ((b"PLAIN", b"\0ann\0secret"), (b"PLAIN", b"ann\0hers"), (b"PLAIN", b""), (b"CRAM-MD5", b"\0ann\0hers"),
                            (b"PLAIN", b"\0ann\0hers\0")):
        test.assertEqual((peer.ask(0x21, mechanism, value=data)[0], peer.ask(0x00, b"a")[0]), (refused, refused), data)
    test.assertEqual((peer.ask(0x21, b"PLAIN", value=b"\0ann\0hers")[::3], peer.set(b"a", b"1")[0]), ((0, b"Authenticated"), 0))
    test.assertEqual((peer.ask(0x22, b"PLAIN")[0], peer.ask(0x21, b"PLAIN", value=b"ann\0default\0secret")[0]), (refused, 0))
    said = subprocess.run(["memccat", f"--servers=127.0.0.1:{port}", "--binary", "--username=ann", "--password=hers", "a"],
                          capture_output=True, text=True, timeout=LIMIT_S, check=False)
    test.assertEqual(said.stdout, "1\n", said.stderr)
