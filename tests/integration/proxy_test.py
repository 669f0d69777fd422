#!/usr/bin/python3
"""gannet-proxy as programs of others use it: proxy_test.py BIN_DIR CPP_TEST

Starts kvserver and gannet-proxy, and lets redis-cli, redis-benchmark, redis-py, pymemcache, libmemcached's tools and a
program on hiredis (CPP_TEST) do their work.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import pymemcache.client.base
import redis

import proxy_binary
import proxy_http
import proxy_memory
import proxy_redis
import proxy_tier

BIN, HIREDIS = sys.argv[1], sys.argv[2]
LIMIT_S = 60
WIDE = 1 << 63


def start(program, *flags, stderr=None):
    """Returns a program that said READY, and the words of that line."""
    child = subprocess.Popen([os.path.join(BIN, program), *flags], stdout=subprocess.PIPE, stderr=stderr, text=True)
    words = child.stdout.readline().split()
    if not words or words[0] != "READY":
        raise RuntimeError(f"{program} did not start")
    return child, words


def stop(child, how=signal.SIGTERM):
    child.send_signal(how)
    code = child.wait(LIMIT_S)
    child.stdout.close()
    return code


def setUpModule():
    global folder, server, endpoint, proxy, port, path
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, "proxy.sock")
    server, words = start("kvserver", "--listen=127.0.0.1:0", "--memory=64M", "--device=soft", "--busy_poll_us=0")
    endpoint = words[1]
    proxy, words = start("gannet-proxy", f"--server={endpoint}", "--device=soft", "--threads=2",
                         f"--listen=127.0.0.1:0,unix:{path}")
    port = int(words[1].split(",")[0].rsplit(":", 1)[1])


def tearDownModule():
    code = stop(proxy)
    stop(server)
    left = os.path.exists(path)
    folder.cleanup()
    assert code == 0 and not left, (code, left)


def run(*argv, check=True, **more):
    result = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, **more)
    if check and result.returncode != 0:
        raise AssertionError(f"{argv}: {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result


class Raw:
    """A connection on which bytes are written and compared."""

    def __init__(self, unix=False):
        if unix:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(path)
        else:
            self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(LIMIT_S)
        self.got = b""

    def send(self, data):
        self.socket.sendall(data)

    def take(self, size):
        while len(self.got) < size:
            more = self.socket.recv(1 << 16)
            if not more:
                break
            self.got += more
        taken, self.got = self.got[:size], self.got[size:]
        return taken

    def ask(self, data, answer):
        self.send(data)
        got = self.take(len(answer))
        assert got == answer, (data[:100], got[:200], answer[:200])

    def closed(self):
        return self.take(1) == b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


class Memcached(unittest.TestCase):
    def setUp(self):
        with Raw() as raw:
            raw.ask(b"flush_all\r\n", b"OK\r\n")

    def test_classic_commands(self):
        with Raw(unix=True) as raw:
            raw.ask(b"set a 7 0 3\r\none\r\n", b"STORED\r\n")
            raw.ask(b"get a b\r\n", b"VALUE a 7 3\r\none\r\nEND\r\n")
            raw.ask(b"add a 0 0 1\r\nx\r\nreplace b 0 0 1\r\nx\r\n", b"NOT_STORED\r\nNOT_STORED\r\n")
            raw.ask(b"append a 0 0 1\r\n!\r\nprepend a 0 0 1\r\n?\r\n", b"STORED\r\nSTORED\r\n")
            raw.ask(b"append b 0 0 1\r\n!\r\n", b"NOT_STORED\r\n")
            raw.ask(b"get a\r\n", b"VALUE a 7 5\r\n?one!\r\nEND\r\n")
            raw.ask(b"delete a\r\ndelete a\r\n", b"DELETED\r\nNOT_FOUND\r\n")
            raw.ask(b"set n 0 0 1 noreply\r\n1\r\nget n\r\n", b"VALUE n 0 1\r\n1\r\nEND\r\n")
            raw.ask(b"mn\r\nversion\r\n", b"MN\r\nVERSION ")

    def test_counters_have_no_sign_and_wrap_above_only(self):
        with Raw() as raw:
            raw.ask(b"incr c 1\r\n", b"NOT_FOUND\r\n")
            raw.ask(b"set c 5 0 2\r\n10\r\nincr c 5\r\ndecr c 20\r\n", b"STORED\r\n15\r\n0\r\n")
            most = str(2 * WIDE - 1).encode()
            raw.ask(b"set c 5 0 20\r\n" + most + b"\r\nincr c 2\r\n", b"STORED\r\n1\r\n")
            raw.ask(b"incr c %d\r\nincr c 1\r\n" % (WIDE - 2), b"%d\r\n%d\r\n" % (WIDE - 1, WIDE))
            raw.ask(b"get c\r\n", b"VALUE c 5 19\r\n%d\r\nEND\r\n" % WIDE)
            raw.ask(b"set c 0 0 1\r\nx\r\nincr c 1\r\n",
                    b"STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n")

    def test_no_change_of_many_clients_is_lost(self):
        with contextlib.ExitStack() as stack:
            raws = [stack.enter_context(Raw()) for _ in range(8)]
            raws[0].ask(b"set c 0 0 4\r\n1000\r\n", b"STORED\r\n")
            for raw in raws:  # the store has no decrement: each is read, and written if nobody was in between
                raw.send(b"decr c 1 noreply\r\n" * 25 + b"mn\r\n")
            for raw in raws:
                raw.ask(b"", b"MN\r\n")
            raws[0].ask(b"get c\r\n", b"VALUE c 0 3\r\n800\r\n")

    def test_cas(self):
        with Raw() as raw:
            raw.ask(b"cas a 0 0 1 1\r\nx\r\n", b"NOT_FOUND\r\n")
            raw.ask(b"set a 0 0 1\r\nx\r\n", b"STORED\r\n")
            raw.send(b"gets a\r\n")
            unique = raw.take(len(b"VALUE a 0 1 ")) and b""
            while not unique.endswith(b"\r\n"):
                unique += raw.take(1)
            raw.take(len(b"x\r\nEND\r\n"))
            raw.ask(b"cas a 0 0 1 %s\r\ny\r\n" % unique.strip(), b"STORED\r\n")
            raw.ask(b"cas a 0 0 1 %s\r\nz\r\n" % unique.strip(), b"EXISTS\r\n")
            raw.ask(b"cas a 0 0 1 0\r\nz\r\nget a\r\n", b"EXISTS\r\nVALUE a 0 1\r\ny\r\nEND\r\n")

    def test_times_to_live(self):
        with Raw() as raw:
            raw.ask(b"set a 0 -1 1\r\nx\r\nget a\r\n", b"STORED\r\nEND\r\n")
            later = int(time.time()) + 100
            raw.ask(b"set a 0 %d 1\r\nx\r\nget a\r\n" % later, b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n")
            raw.ask(b"gat 0 a\r\nmg a t\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\nHD t-1\r\n")
            raw.ask(b"touch a %d\r\nget a\r\ntouch a 9\r\n" % (later - 200),
                    b"TOUCHED\r\nEND\r\nNOT_FOUND\r\n")

    def test_meta_commands(self):
        with Raw() as raw:
            raw.ask(b"ms a 2 F5 T100\r\nhi\r\n", b"HD\r\n")
            raw.ask(b"mg a v f k Oq1\r\n", b"VA 2 f5 ka Oq1\r\nhi\r\n")
            raw.ask(b"mg b v q\r\nmg b\r\nmn\r\n", b"EN\r\nMN\r\n")
            raw.ask(b"ms a 1 ME\r\nx\r\nms b 1 MR\r\nx\r\n", b"NS\r\nNS\r\n")
            raw.ask(b"ms a 1 MA\r\n!\r\nms YQ== 1 b MP\r\n?\r\nmg a v\r\n", b"HD\r\nHD b\r\nVA 4\r\n?hi!\r\n")
            raw.ask(b"ms a 1 C1\r\nx\r\nmd a C1\r\n", b"EX\r\nEX\r\n")
            raw.ask(b"ma c N0 J13 v\r\nma c D2 v\r\nma c MD D99 v\r\nma d\r\n",
                    b"VA 2\r\n13\r\nVA 2\r\n15\r\nVA 1\r\n0\r\nNF\r\n")
            raw.ask(b"ma q N100 T0 t\r\nmd q\r\nma q T0 N100 t\r\nma q T500 t\r\nmg none k O1 k\r\n",
                    b"HD t-1\r\nHD\r\nHD t100\r\nHD t500\r\nEN knone O1 knone\r\n")
            raw.ask(b"md a q\r\nmd a\r\nmg c l\r\n", b"NF\r\nCLIENT_ERROR flag l is not supported\r\n")

    def test_wrong_lines_are_answered_and_the_connection_goes_on(self):
        with Raw() as raw:
            raw.ask(b"nonsense\r\nset a\r\n\r\n", b"ERROR\r\nERROR\r\nERROR\r\n")
            raw.ask(b"get " + b"k" * 251 + b"\r\n", b"CLIENT_ERROR bad command line format\r\n")
            raw.ask(b"set a x 0 1\r\n1\r\n", b"CLIENT_ERROR bad command line format\r\n")
            raw.ask(b"set a 0 0 1\r\nxyz", b"CLIENT_ERROR bad data chunk\r\n")
            raw.ask(b"set a 0 0 -1\r\n", b"CLIENT_ERROR bad data chunk\r\n")
            raw.ask(b"set a 0 0 67108865\r\n" + bytes(67108865) + b"\r\nget a\r\n",
                    b"SERVER_ERROR object too large for cache\r\nEND\r\n")

    def test_more_keys_than_a_line_has_elsewhere(self):
        with Raw() as raw:
            raw.ask(b"set k 0 0 1\r\nx\r\nset %s 0 0 1\r\ny\r\n" % (b"l" * 250), b"STORED\r\n" * 2)
            value, long = b"VALUE k 0 1\r\nx\r\n", b"VALUE " + b"l" * 250 + b" 0 1\r\ny\r\n"
            raw.ask(b"get" + (b" k " + b"l" * 250) * 5_000 + b"\r\n", (value + long) * 5_000 + b"END\r\n")
            raw.ask(b"k" * 65_536, b"CLIENT_ERROR line too long\r\n")
            self.assertTrue(raw.closed())

    def test_a_counter_that_is_negative_is_no_number(self):
        with Raw() as raw:
            raw.ask(b"set c 5 0 2\r\n-3\r\nincr c 2\r\nincr c 9\r\nget c\r\n",
                    b"STORED\r\n" + 2 * b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n" +
                    b"VALUE c 5 2\r\n-3\r\nEND\r\n")

    def test_what_exporters_ask_for(self):
        with Raw() as raw:
            raw.ask(b"cas none 0 0 1 7\r\nx\r\nset a 0 0 1\r\nx\r\ncas a 0 0 1 1\r\ny\r\n", b"NOT_FOUND\r\nSTORED\r\nEXISTS\r\n")
        client = pymemcache.client.base.Client(("127.0.0.1", port))
        self.addCleanup(client.close)
        stats = client.stats()
        self.assertGreater(stats[b"cas_misses"], 0)
        self.assertGreater(stats[b"cas_badval"], 0)
        self.assertIn(b"cas_hits", stats)
        self.assertEqual(client.stats("settings")[b"item_size_max"], 67108864)
        self.assertEqual((client.stats("items"), client.stats("slabs")[b"active_slabs"]), ({}, 0))

    def test_long_values(self):
        with Raw() as raw:
            for size in (0, 1, 3000, 5000, 70_000, 3 << 20):
                value = os.urandom(size)
                raw.ask(b"set a 0 0 %d\r\n%s\r\n" % (size, value), b"STORED\r\n")
                raw.ask(b"get a\r\n", b"VALUE a 0 %d\r\n%s\r\nEND\r\n" % (size, value))
            raw.ask(b"set a 0 0 3\r\nabc\r\nappend a 0 0 5000\r\n%s\r\n" % (b"d" * 5000), b"STORED\r\nSTORED\r\n")
            raw.ask(b"get a\r\n", b"VALUE a 0 5003\r\nabc" + b"d" * 5000)

    def test_pymemcache(self):
        client = pymemcache.client.base.Client(("127.0.0.1", port), no_delay=True)
        self.assertTrue(client.set("key", b"value", expire=100, noreply=False))
        value, unique = client.gets("key")
        self.assertEqual(value, b"value")
        self.assertTrue(client.cas("key", b"1", unique, noreply=False))
        self.assertFalse(client.cas("key", b"2", unique, noreply=False))
        self.assertEqual(client.incr("key", 41, noreply=False), 42)
        client.set_many({f"k{i}": str(i) for i in range(100)})
        self.assertEqual(len(client.get_many([f"k{i}" for i in range(200)])), 100)
        self.assertTrue(client.touch("key", 5, noreply=False))
        self.assertTrue(client.delete("key", noreply=False))
        self.assertIn(b"curr_items", client.stats())
        client.close()

    def test_libmemcached_tools(self):
        servers = f"--servers=127.0.0.1:{port}"
        file = os.path.join(folder.name, "a_file")
        with open(file, "w", encoding="utf-8") as out:
            out.write("from a file")
        run("memccp", servers, file)
        self.assertIn("from a file", run("memccat", servers, "a_file").stdout)
        run("memcexist", servers, "a_file")
        self.assertIn("curr_items: 1", run("memcstat", servers).stdout)
        run("memctouch", servers, "--expire=100", "a_file")
        run("memcrm", servers, "a_file")
        self.assertNotEqual(run("memcexist", servers, "a_file", check=False).returncode, 0)
        run("memcping", servers)
        run("memcslap", servers, "--concurrency=4", "--execute-number=200", "--test=get", "--initial-load=500")
        run("memcflush", servers)

    def test_memccapable(self):
        result = run("memccapable", "-h", "127.0.0.1", "-p", str(port), "-a", check=False)
        said = result.stdout + result.stderr
        # memcached 1.6.18 fails the same two: `verbosity` without a number is no error there, nor `stats foo`.
        self.assertEqual(said.count("[pass]"), 25, said)
        self.assertIn("2 of 27 tests failed", said)


class Redis(unittest.TestCase):
    def setUp(self):
        self.client = redis.Redis(port=port, decode_responses=True)
        self.client.flushall()
        self.addCleanup(self.client.close)

    def test_redis_py(self):
        c = self.client
        self.assertTrue(c.ping())
        self.assertTrue(c.set("a", "1", ex=100))
        self.assertEqual((c.get("a"), c.get("b"), c.ttl("b")), ("1", None, -2))
        self.assertIn(c.ttl("a"), range(40, 101))
        self.assertIsNone(c.set("a", "2", nx=True))
        self.assertIsNone(c.set("b", "2", xx=True))
        self.assertEqual(c.set("a", "2", get=True, keepttl=True), "1")
        self.assertIn(c.ttl("a"), range(40, 101))
        self.assertEqual((c.persist("a"), c.persist("a"), c.ttl("a")), (1, 0, -1))
        self.assertTrue(c.mset({"x": "1", "y": "2"}))
        self.assertEqual(c.mget("x", "z", "y"), ["1", None, "2"])
        self.assertEqual((c.exists("x", "y", "z", "x"), c.delete("x", "z"), c.exists("x")), (3, 1, 0))
        self.assertEqual((c.incr("n"), c.incrby("n", 9), c.decr("n"), c.decrby("n", 19)), (1, 10, 9, -10))
        self.assertEqual((c.append("s", "abc"), c.append("s", "d" * 5000), c.strlen("s")), (3, 5003, 5003))
        self.assertEqual((c.pexpire("a", 50_000), c.expire("none", 5)), (True, False))
        self.assertGreater(c.pttl("a"), 1_000)
        self.assertEqual(c.getex("a", ex=1000), "2")
        self.assertIn(c.ttl("a"), range(900, 1001))
        self.assertEqual((c.getdel("a"), c.getdel("a")), ("2", None))
        self.assertEqual((c.touch("s", "n", "none"), c.type("s"), c.dbsize()), (2, "string", 3))
        self.assertTrue(c.expire("s", -1))
        self.assertEqual(c.exists("s"), 0)
        self.assertEqual(c.info()["gannet_servers"], 1)
        for words in (["INCR", "y", "1"], ["GET", "k" * 251], ["GET", ""], ["LPUSH", "a", "b"], ["SELECT", "1"],
                      ["SET", "a", "b", "EX", "0"], ["SET", "a", "b", "NX", "XX"]):
            with self.assertRaises(redis.ResponseError, msg=words):
                c.execute_command(*words)
        c.set("word", "x")
        with self.assertRaisesRegex(redis.ResponseError, "not an integer"):
            c.incr("word")
        c.set("most", WIDE - 1)
        with self.assertRaisesRegex(redis.ResponseError, "overflow"):
            c.incr("most")

    def test_a_pipeline_keeps_its_order(self):
        with self.client.pipeline(transaction=False) as pipeline:
            for i in range(2000):
                pipeline.get("p").set("p", i).append("p", "x").get("p").incr("count")
            answers = pipeline.execute()
        for i in range(2000):
            before = None if i == 0 else f"{i - 1}x"
            self.assertEqual(answers[5 * i:5 * i + 5], [before, True, len(str(i)) + 1, f"{i}x", i + 1])

    def test_commands_that_arrive_byte_by_byte(self):
        with Raw() as raw:
            for byte in b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\none\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n":
                raw.send(bytes([byte]))
            self.assertEqual(raw.take(21), b"+OK\r\n$3\r\none\r\n+PONG\r\n")

    def test_resp3(self):
        with Raw() as raw:
            raw.ask(b"GET none\r\n", b"$-1\r\n")
            raw.ask(b"HELLO 3 SETNAME me\r\n", b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n")
            while not raw.got.endswith(b"modules\r\n*0\r\n"):
                raw.got += raw.socket.recv(100)
            raw.got = b""
            raw.ask(b"GET none\r\nCLIENT GETNAME\r\n", b"_\r\n$2\r\nme\r\n")

    def test_a_web_page_cannot_talk_to_it(self):
        with Raw() as raw:
            raw.send(b"POST / HTTP/1.1\r\n")
            self.assertTrue(raw.closed())

    def test_wrong_bytes_end_the_connection(self):
        with Raw() as raw:
            raw.ask(b"*1\r\n+PING\r\n", b"-ERR Protocol error: ")
            while not raw.closed():
                pass

    def test_redis_cli(self):
        def cli(*words):
            return run("redis-cli", "-p", str(port), *words).stdout.strip()

        self.assertEqual(cli("SET", "a", "b c"), "OK")
        self.assertEqual(cli("GET", "a"), "b c")
        self.assertEqual(cli("-3", "GET", "none"), "")
        self.assertEqual(run("redis-cli", "-s", path, "STRLEN", "a").stdout.strip(), "3")
        self.assertIn("maxclients", cli("INFO"))

    def test_redis_benchmark(self):
        said = run("redis-benchmark", "-p", str(port), "-n", "2000", "-c", "20", "-P", "8", "-q", "-t",
                   "ping_inline,ping_mbulk,set,get,incr,mset").stdout
        self.assertEqual(said.count("requests per second"), 6, said)
        self.assertNotIn("Error", said)

    def test_hiredis(self):
        run(HIREDIS, str(port), path)


class Binary(proxy_binary.Binary):
    def setUp(self):
        self.port = port
        super().setUp()

    def test_libmemcached_tools(self):
        servers = f"--servers=127.0.0.1:{port}"
        file = os.path.join(folder.name, "b_file")
        with open(file, "w", encoding="utf-8") as out:
            out.write("binary")
        run("memccp", servers, "--binary", file)
        self.assertIn("binary", run("memccat", servers, "--binary", "b_file").stdout)
        self.assertIn("curr_items: 1", run("memcstat", servers, "--binary").stdout)
        run("memctouch", servers, "--binary", "--expire=100", "b_file")
        run("memcrm", servers, "--binary", "b_file")
        self.assertNotEqual(run("memcexist", servers, "--binary", "b_file", check=False).returncode, 0)
        run("memcflush", servers, "--binary")

    def test_memccapable(self):
        result = run("memccapable", "-h", "127.0.0.1", "-p", str(port), "-b", check=False)
        said = result.stdout + result.stderr
        self.assertIn("All tests passed", said)


class RedisMore(proxy_redis.RedisMore):
    def setUp(self):
        self.port = port
        super().setUp()


class Memory(proxy_memory.Memory):
    def setUp(self):
        self.path = os.path.join(folder.name, "small.sock")
        self.log = os.path.join(folder.name, "small.log")
        with open(self.log, "w", encoding="utf-8") as out:
            self.small, words = start("gannet-proxy", f"--server={endpoint}", "--device=soft",
                                      f"--listen=127.0.0.1:0,unix:{self.path}", f"--buffers={proxy_memory.BUFFERS}",
                                      stderr=out)
        self.addCleanup(lambda: self.assertEqual(stop(self.small), 0))
        self.port, self.pid = int(words[1].split(",")[0].rsplit(":", 1)[1]), self.small.pid
        super().setUp()


@unittest.skipUnless(os.path.exists(os.path.join(BIN, "kvcli")), "tsan leaves out kvcli, which asks for the server's statistics")
class Tier(proxy_tier.Tier):
    def setUp(self):
        disk = os.path.join(folder.name, self.id())
        os.mkdir(disk, 0o700)
        if run("stat", "--file-system", "--format=%T", disk).stdout.strip() == "tmpfs":
            self.skipTest("no tier may be in the directory for tests, which is on tmpfs")
        cached, words = start("kvserver", "--listen=127.0.0.1:0", f"--memory={proxy_tier.MEMORY >> 20}M", "--device=soft",
                              "--busy_poll_us=0", "--on_full=evict", f"--tier={disk}", "--tier_bytes=1G")
        self.addCleanup(stop, cached)
        self.address = words[1]
        before, words = start("gannet-proxy", f"--server={self.address}", "--device=soft", "--listen=127.0.0.1:0")
        self.addCleanup(lambda: self.assertEqual(stop(before), 0))
        self.port = int(words[1].rsplit(":", 1)[1])
        super().setUp()

    def statistic(self, name):
        said = run(os.path.join(BIN, "kvcli"), f"--server={self.address}", "--device=soft", "--json", "stats").stdout
        return json.loads(said)[name]


class Store(unittest.TestCase):
    def rpcs(self):
        client = pymemcache.client.base.Client(("127.0.0.1", port))
        self.addCleanup(client.close)
        return int(client.stats()[b"gannet_rpcs"])

    def test_gets_of_known_keys_use_nothing_of_the_server(self):
        client = redis.Redis(port=port)
        client.mset({f"known{i}": "v" * 100 for i in range(100)})
        keys = [f"known{i}" for i in range(100)]
        client.mget(keys)
        before = self.rpcs()
        for _ in range(200):
            self.assertNotIn(None, client.mget(keys))
        after = self.rpcs()
        client.close()
        # 20,000 GETs. The two calls of stats are requests, and so are heartbeats.
        self.assertLess(after - before, 100)

    def test_commands_that_want_no_value_read_none(self):
        value = b"x" * (16 << 20)
        writer = redis.Redis(port=port)
        self.addCleanup(writer.close)
        self.addCleanup(writer.delete, "long")
        writer.set("long", value)
        fresh, words = start("gannet-proxy", f"--server={endpoint}", "--device=soft", "--listen=127.0.0.1:0")
        self.addCleanup(stop, fresh)
        client = redis.Redis(port=int(words[1].rsplit(":", 1)[1]))
        self.addCleanup(client.close)
        self.assertEqual(client.exists("absent"), 0)
        before = proxy_memory.resident(fresh.pid, "VmHWM")
        answers = (client.exists("long", "absent", "long"), client.strlen("long"), client.type("long"), client.ttl("long"),
                   client.touch("long"))
        self.assertEqual(answers, (2, len(value), b"string", -1, 1))
        # A value that is READ lies in the proxy's memory. Without this it takes 90 MB more. A sanitizer's own
        # memory grew by 15 MB.
        self.assertLess(proxy_memory.resident(fresh.pid, "VmHWM") - before, 2 * len(value))

    def test_many_connections_at_once(self):
        def work(number):
            client = redis.Redis(port=port)
            for i in range(50):
                client.set(f"c{number}", i)
                if client.get(f"c{number}") != str(i).encode():
                    wrong.append(number)
            client.close()

        wrong = []
        threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Flags(unittest.TestCase):
    def test_other_hosts_are_refused(self):
        result = run(os.path.join(BIN, "gannet-proxy"), "--listen=0.0.0.0:0", "--device=soft",
                     f"--server={endpoint}", check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--allow_remote", result.stderr)

    def test_wrong_usage(self):
        for flag in ("--protocol=x", "--threads=0", "--socket_mode=9", "--nonsense"):
            result = run(os.path.join(BIN, "gannet-proxy"), "--device=soft", flag, check=False)
            self.assertEqual(result.returncode, 2, flag)

    def test_passwords(self):
        file = os.path.join(folder.name, "passwords")
        with open(file, "w", encoding="utf-8") as out:
            out.write("# of applications\nsecret\nann hers\n")
        flags = (f"--server={endpoint}", "--device=soft", f"--password_file={file}")
        os.chmod(file, 0o644)
        result = run(os.path.join(BIN, "gannet-proxy"), *flags, "--listen=127.0.0.1:0", check=False)
        self.assertEqual((result.returncode, "others may read it" in result.stderr), (2, True))
        os.chmod(file, 0o600)
        locked, words = start("gannet-proxy", *flags, "--listen=127.0.0.1:0")
        self.addCleanup(stop, locked)
        locked_port = int(words[1].rsplit(":", 1)[1])
        for login in ({"password": "secret"}, {"username": "ann", "password": "hers"}):
            with contextlib.closing(redis.Redis(port=locked_port, **login)) as client:
                self.assertTrue(client.set("a", "1"))
                with client.pipeline() as pipeline:
                    self.assertEqual(pipeline.get("a").execute(), [b"1"])
        with contextlib.closing(redis.Redis(port=locked_port)) as client:
            for words, why in ((["GET", "a"], "required"), (["MULTI"], "required"), (["HELLO", "3"], "HELLO must be called"),
                               (["AUTH", "wrong"], "invalid"), (["AUTH", "ann", "secret"], "invalid"), (["GET", "a"], "required")):
                with self.assertRaisesRegex((redis.ResponseError, redis.AuthenticationError), why):
                    client.execute_command(*words)
            client.execute_command("HELLO", "2", "AUTH", "ann", "hers")
            self.assertEqual(client.get("a"), b"1")
            client.execute_command("RESET")
            with self.assertRaises(redis.AuthenticationError):
                client.get("a")
        for said, answer in ((b"get a\r\n", b"CLIENT_ERROR unauthenticated\r\n"),
                             (b"set x 0 0 5\r\nann x\r\nget a\r\n", b"CLIENT_ERROR authentication failure\r\nCLIENT_ERROR unaut"),
                             (b"set x 0 0 8\r\nann hers\r\nget a\r\n", b"STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n"),
                             (b"\x80\x00\x00\x01" + bytes(4) + b"\x00\x00\x00\x01" + bytes(12) + b"a", b"\x81\x00\x00\x00\x00\x00\x00\x20")):
            with socket.create_connection(("127.0.0.1", locked_port)) as one, one.makefile("rb") as got:
                one.settimeout(LIMIT_S)
                one.sendall(said)
                self.assertEqual(got.read(len(answer)), answer)
        proxy_binary.check_sasl(self, locked_port)

    def test_databases(self):
        several, words = start("gannet-proxy", f"--server={endpoint}", "--device=soft", "--databases=3", "--listen=127.0.0.1:0")
        self.addCleanup(stop, several)
        proxy_redis.check_databases(self, int(words[1].rsplit(":", 1)[1]))

    def test_too_many_connections_are_refused(self):
        small, words = start("gannet-proxy", f"--server={endpoint}", "--device=soft", "--connections_max=1",
                             "--listen=127.0.0.1:0")
        address = ("127.0.0.1", int(words[1].rsplit(":", 1)[1]))
        with socket.create_connection(address) as first, socket.create_connection(address) as second:
            first.sendall(b"mn\r\n")
            self.assertEqual(first.recv(4), b"MN\r\n")
            self.assertTrue(second.recv(100).startswith(b"-ERR max number of clients"))
        self.assertEqual(stop(small), 0)


class Log(unittest.TestCase):
    def start(self, *flags, **more):
        log = os.path.join(folder.name, "some.log")
        some, words = start("gannet-proxy", f"--server={endpoint}", "--device=soft", "--listen=127.0.0.1:0",
                            f"--log_file={log}", *flags, **more)
        self.addCleanup(stop, some)
        return some, ("127.0.0.1", int(words[1].rsplit(":", 1)[1])), log

    def await_line(self, log, pattern):
        give_up = time.monotonic() + LIMIT_S
        while time.monotonic() < give_up:
            with contextlib.suppress(FileNotFoundError), open(log, encoding="utf-8") as said:
                if re.search(pattern, said.read()):
                    return
            time.sleep(0.01)
        self.fail(f"no line {pattern!r}")

    def test_sighup_opens_the_log_anew_and_ends_nothing(self):
        some, address, log = self.start("--buffers=8388608")
        os.rename(log, log + ".1") if os.path.exists(log) else None
        some.send_signal(signal.SIGHUP)
        with socket.create_connection(address) as silent:  # fills --buffers, so that a line is written
            with self.assertRaises(ConnectionError):
                while True:
                    silent.sendall(b"INFO\r\n" * 10_000)
        self.await_line(log, "--buffers is used up")

    def test_without_descriptors_it_waits_and_says_so(self):
        prlimit = ["prlimit", "--nofile=40:40", os.path.join(BIN, "gannet-proxy")]
        log = os.path.join(folder.name, "few.log")
        few = subprocess.Popen([*prlimit, f"--server={endpoint}", "--device=soft", "--listen=127.0.0.1:0",
                                f"--log_file={log}"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(stop, few)
        address = ("127.0.0.1", int(few.stdout.readline().split()[1].rsplit(":", 1)[1]))
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(socket.create_connection(address)) for _ in range(40)]
            self.await_line(log, "limit of open files is 40.*\n(.*\n)*.*no connection can be accepted: Too many open files")
            held[0].sendall(b"mn\r\n")
            held[-1].sendall(b"mn\r\n")
            self.assertEqual(held[0].recv(4), b"MN\r\n")
            for one in held[:30]:
                one.close()
            held[-1].settimeout(LIMIT_S)
            self.assertEqual(held[-1].recv(4), b"MN\r\n")


class LostServer(unittest.TestCase):
    def test_commands_fail_until_the_server_is_back(self):
        first, words = start("kvserver", "--listen=127.0.0.1:0", "--memory=64M", "--device=soft")
        address = words[1]
        lonely, words = start("gannet-proxy", f"--server={address}", "--device=soft", "--listen=127.0.0.1:0")
        client = redis.Redis(port=int(words[1].rsplit(":", 1)[1]), retry_on_timeout=False)
        self.assertTrue(client.set("a", "1"))
        stop(first, signal.SIGKILL)
        with self.assertRaisesRegex(redis.ResponseError, f"^{address} (was lost|cannot be reached|did not answer)"):
            for _ in range(1000):
                client.set("a", "2")
        again, _ = start("kvserver", f"--listen={address}", "--memory=64M", "--device=soft")
        give_up = time.monotonic() + LIMIT_S
        back = False
        while not back and time.monotonic() < give_up:
            try:
                back = client.set("a", "3")
            except redis.ResponseError:
                time.sleep(0.01)
        self.assertTrue(back)
        self.assertEqual(client.get("a"), b"3")
        client.close()
        self.assertEqual(stop(lonely), 0)
        stop(again)


class Http(proxy_http.Http):
    FLAGS = ("--memory=64M", "--device=soft", "--busy_poll_us=0")

    def setUp(self):
        self.server, words = start("kvserver", "--listen=127.0.0.1:0", *self.FLAGS)
        self.address = words[1]
        log = os.path.join(folder.name, "proxy.log")
        with open(log, "w", encoding="utf-8") as out:
            shown, words = start("gannet-proxy", f"--server={self.address}", "--device=soft", "--listen=127.0.0.1:0",
                                 "--http=127.0.0.1:0", stderr=out)
        self.addCleanup(lambda: stop(self.server))
        self.addCleanup(self.check_that_it_ends_well, shown, log)
        self.port = int(words[1].rsplit(":", 1)[1])
        with open(log, encoding="utf-8") as said:
            self.url = re.search(r"shows itself at (\S+)", said.read()).group(1)
        super().setUp()

    def check_that_it_ends_well(self, shown, log):
        code = stop(shown)
        with open(log, encoding="utf-8") as said:
            self.assertEqual(code, 0, said.read())

    def lose(self):
        stop(self.server, signal.SIGKILL)

    def find(self):
        self.server, _ = start("kvserver", f"--listen={self.address}", *self.FLAGS)

    def test_who_shows_it_to_others_is_warned(self):
        log = os.path.join(folder.name, "open.log")
        with open(log, "w", encoding="utf-8") as out:
            shown, _ = start("gannet-proxy", f"--server={self.address}", "--device=soft", "--listen=127.0.0.1:0",
                             "--http=0.0.0.0:0", stderr=out)
        self.assertEqual(stop(shown), 0)
        with open(log, encoding="utf-8") as said:
            lines = said.read()
        self.assertRegex(lines, r"--http=0\.0\.0\.0:0 has no password")
        for line in lines.splitlines():
            self.assertRegex(line, r"^[IWE]\d{8} \d\d:\d\d:\d\d\.\d{6} ")  # level, date and time
        result = run(os.path.join(BIN, "gannet-proxy"), "--device=soft", f"--server={self.address}",
                     "--listen=127.0.0.1:0", "--http=9472", check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("no ADDR:PORT", result.stderr)


class OneOfThree(unittest.TestCase):
    """A server of three is lost."""

    def setUp(self):
        flags = ("--listen=127.0.0.1:0", "--memory=64M", "--device=soft", "--busy_poll_us=0")
        started = [start("kvserver", *flags) for _ in range(3)]
        self.addresses = [words[1] for _, words in started]
        self.lonely, words = start("gannet-proxy", "--server=" + ",".join(self.addresses), "--device=soft",
                                   "--listen=127.0.0.1:0")
        self.port = int(words[1].rsplit(":", 1)[1])
        self.client = redis.Redis(port=self.port, retry_on_timeout=False)
        self.keys = [f"k{i}" for i in range(60)]
        self.client.mset(dict.fromkeys(self.keys, b"v"))
        stop(started[0][0], signal.SIGKILL)
        for child in [self.lonely, started[1][0], started[2][0]]:
            self.addCleanup(stop, child)
        self.addCleanup(self.client.close)

    def test_the_others_go_on(self):
        values = self.client.mget(self.keys)
        there = values.count(b"v")
        self.assertIn(there, range(10, 55))
        for value in values:
            self.assertTrue(value == b"v" or "cannot be reached" in str(value) or "in time" in str(value), value)
        memcached = pymemcache.client.base.Client(("127.0.0.1", self.port))
        self.assertEqual(len(memcached.get_many(self.keys)), there)
        lost = self.keys[next(i for i, value in enumerate(values) if value != b"v")]
        with self.assertRaises(pymemcache.exceptions.MemcacheServerError):
            memcached.get(lost)
        memcached.close()
        self.assertEqual(self.client.dbsize(), there)
        self.assertEqual(self.client.info()["gannet_servers_unreachable"], 1)
        with self.assertRaisesRegex(redis.ResponseError, self.addresses[0]):
            self.client.keys("*")
        with self.assertRaisesRegex(redis.ResponseError, "are flushed, but not " + self.addresses[0]):
            self.client.flushall()
        self.assertEqual(self.client.dbsize(), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
