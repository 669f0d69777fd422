"""What libraries for Redis do with gannet-proxy beyond GET and SET: transactions, locks, walks. A part of proxy_test.py,
which starts the programs."""

import socket
import unittest

import redis


class RedisMore(unittest.TestCase):
    # of the proxy: set by who derives from this
    port = None

    def setUp(self):
        self.client = redis.Redis(port=self.port, decode_responses=True)
        self.client.flushall()
        self.addCleanup(self.client.close)

    def other(self):
        client = redis.Redis(port=self.port, decode_responses=True)
        self.addCleanup(client.close)
        return client

    def words(self, *commands):
        """The answers to commands on one connection; an error is its text."""
        connection = self.client.connection_pool.get_connection("_")
        answers = []
        for command in commands:
            connection.send_command(*command.split())
            try:
                answers.append(connection.read_response())
            except redis.ResponseError as error:
                answers.append(str(error))
        self.client.connection_pool.release(connection)
        return answers

    def refused(self, pattern, *words):
        with self.assertRaisesRegex(redis.ResponseError, pattern, msg=words):
            self.client.execute_command(*words)

    def test_no_change_of_many_clients_is_lost(self):
        connections = [self.other().connection_pool.get_connection("_") for _ in range(8)]
        for connection in connections:
            for _ in range(25):
                connection.send_command("INCRBYFLOAT", "f", "0.5")
        for connection in connections:
            for _ in range(25):
                connection.read_response()
        self.assertEqual(self.client.get("f"), "100")

    # --- transactions

    def test_a_transaction_that_is_discarded_writes_nothing(self):
        self.assertEqual(self.words("MULTI", "SET ma 1", "INCR n", "DISCARD"), ["OK", "QUEUED", "QUEUED", "OK"])
        self.assertEqual((self.client.get("ma"), self.client.get("n")), (None, None))

    def test_a_transaction_with_a_wrong_command_writes_nothing(self):
        for wrong, why in (("HSET h f v", "strings only"), ("GET", "wrong number"), ("GET " + "k" * 251, "251 bytes"),
                           ("CLIENT LIST", "not allowed inside a transaction")):
            answers = self.words("MULTI", "SET ma 1", wrong, "EXEC")
            self.assertIn(why, answers[2])
            self.assertTrue(answers[3].startswith("Transaction discarded because of previous errors"), answers)
            self.assertIsNone(self.client.get("ma"))
        self.assertEqual(self.words("EXEC", "DISCARD"), ["EXEC without MULTI", "DISCARD without MULTI"])
        self.assertEqual(self.words("MULTI", "MULTI", "WATCH a", "SET a 1", "EXEC"),
                         ["OK", "MULTI calls can not be nested", "WATCH inside MULTI is not allowed", "QUEUED", ["OK"]])

    def test_a_pipeline_of_redis_py(self):
        with self.client.pipeline() as pipeline:
            for i in range(300):
                pipeline.set(f"k{i}", i).get(f"k{i}").incr("sum")
            answers = pipeline.execute()
        self.assertEqual(answers[::3], [True] * 300)
        self.assertEqual(answers[1::3], [str(i) for i in range(300)])
        self.assertEqual(answers[2::3], list(range(1, 301)))

    def test_a_command_that_fails_does_not_stop_those_behind_it(self):
        self.client.set("word", "x")
        with self.client.pipeline() as pipeline:
            answers = pipeline.set("a", "1").incr("word").set("b", "2").mget("a", "b").execute(raise_on_error=False)
        self.assertEqual((answers[0], answers[2], answers[3]), (True, True, ["1", "2"]))
        self.assertIsInstance(answers[1], redis.ResponseError)

    def test_the_transaction_of_redis_py(self):
        self.client.set("balance", 10)
        other, tries = self.other(), []

        def move(pipeline):
            balance = int(pipeline.get("balance"))
            if not tries:
                other.set("balance", 50)  # between WATCH and EXEC
            tries.append(balance)
            pipeline.multi()
            pipeline.set("balance", balance - 1)
            pipeline.incr("moved")

        self.assertEqual(self.client.transaction(move, "balance"), [True, 1])
        self.assertEqual((tries, self.client.get("balance")), ([10, 50], "49"))

    def test_a_watched_key_that_others_made_or_removed(self):
        other = self.other()
        with self.client.pipeline() as pipeline:
            pipeline.watch("none", "there")
            other.set("none", "1")
            pipeline.multi()
            pipeline.set("a", "1")
            with self.assertRaises(redis.WatchError):
                pipeline.execute()
            self.assertIsNone(other.get("a"))
            pipeline.watch("none")
            other.delete("none")
            pipeline.multi()
            pipeline.set("a", "1")
            with self.assertRaises(redis.WatchError):
                pipeline.execute()
            pipeline.watch("none")
            other.set("none", "1")
            pipeline.unwatch()
            pipeline.multi()
            self.assertEqual(pipeline.set("a", "1").execute(), [True])

    def test_writes_of_a_watched_key_by_the_transaction_itself(self):
        for words in (["APPEND", "k", "x"], ["SETNX", "k", "x"], ["SET", "k", "x", "XX"], ["EXPIRE", "k", "9"],
                      ["GETSET", "k", "y"], ["DEL", "k"], ["INCRBYFLOAT", "k", "1"], ["MSETNX", "k", "1"]):
            for before in (None, "1"):
                self.client.delete("k") if before is None else self.client.set("k", before)
                with self.client.pipeline() as pipeline:
                    pipeline.watch("k")
                    pipeline.multi()
                    pipeline.execute_command(*words).incr("count").execute()  # no WatchError
        self.assertEqual(self.client.get("count"), "16")

    # If a conflict is met behind a command that has read a value, the connection goes on, too.
    def test_no_write_of_the_transaction_itself_is_taken_for_anothers(self):
        for body in (("GETEX w EX 100", "SET w 2"), ("GETEX w PERSIST", "SET w 2"), ("FLUSHALL", "SET w 2"), ("DEL w w",),
                     ("MSET w 1 w 2", "GET w"), ("MSET w 1 z 2 w 3", "INCR w"), ("GETDEL w", "SET w 1"),
                     ("COPY z w REPLACE", "SET w 3"), ("SETRANGE w 0 x", "SET w 1"), ("FLUSHALL", "APPEND w 1", "SET w 3"),
                     ("SET w 2 EXAT 1", "SET w 3"), ("EXPIRE w -1", "SET w 1"), ("GETEX w EXAT 1", "SET w 1")):
            self.words("FLUSHALL", "SET w 1", "SET z 1")
            *_, answers, pong = self.words("WATCH w", "MULTI", *body, "EXEC", "PING")
            self.assertIsInstance(answers, list, body)
            self.assertFalse([answer for answer in answers if isinstance(answer, redis.ResponseError)], (body, answers))
            self.assertEqual(pong, "PONG")

    # --- locks

    def test_the_lock_of_redis_py(self):
        lock = self.client.lock("job", timeout=100)
        self.assertTrue(lock.acquire(blocking=False))
        self.assertFalse(self.other().lock("job", timeout=100).acquire(blocking=False))
        self.assertTrue(lock.extend(100))
        self.assertIn(self.client.ttl("job"), range(195, 201))
        self.assertTrue(lock.reacquire())
        self.assertIn(self.client.ttl("job"), range(95, 101))
        lock.release()
        self.assertIsNone(self.client.get("job"))
        lock.acquire()
        self.client.set("job", "another's")
        with self.assertRaises(redis.exceptions.LockError):
            lock.release()
        self.assertEqual(self.client.get("job"), "another's")

    def test_scripts(self):
        c = self.client
        remove = 'if redis.call("get",KEYS[1]) == ARGV[1]\nthen\n    return redis.call("del",KEYS[1])\nelse return 0 end'
        c.set("l", "me")
        self.assertEqual((c.eval(remove, 1, "l", "you"), c.eval(remove, 1, "l", "me"), c.exists("l")), (0, 1, 0))
        add = c.register_script("return redis.call('incrby', KEYS[1], ARGV[1])")
        self.assertEqual((add(keys=["n"], args=[2]), c.script_exists("0" * 40, add.sha), c.script_flush()), (2, [False, True], True))
        self.assertEqual((add(keys=["n"], args=[3]), c.eval("return {1, 'a', {redis.call('get', KEYS[1])}}", 1, "n")), (5, [1, "a", ["5"]]))
        self.refused("No matching script", "EVALSHA", "1" * 40, "0")
        self.refused("Error compiling script", "SCRIPT", "LOAD", "return {")
        self.refused("not allowed from script", "EVAL", "return redis.call('flushall')", "0")
        self.refused("strings only, and no hashes", "EVAL", "return redis.call('hincrby', KEYS[1], 'f', 1)", "1", "h")

    # Of the kinds that libraries send: django-redis, limits, rate-limiter-flexible, Spring, Laravel and LiteLLM.
    def test_scripts_of_locks_and_limits(self):
        c = self.client
        if_there = "if redis.call('EXISTS', KEYS[1]) == 1 then return redis.call('INCRBY', KEYS[1], ARGV[1]) else return false end"
        self.assertIsNone(c.eval(if_there, 1, "n", 1))
        c.set("n", 5, ex=100)
        self.assertEqual(c.eval(if_there, 1, "n", 2), 7)
        self.assertIn(c.ttl("n"), range(90, 101))
        c.set("word", "x")
        self.refused("not an integer", "EVAL", if_there, "1", "word", "1")
        window = """local n = redis.call('incrby', KEYS[1], tonumber(ARGV[2]))
            if tonumber(n) == tonumber(ARGV[2]) then redis.call('expire', KEYS[1], ARGV[1]) end return n"""
        self.assertEqual([c.eval(window, 1, "w", 60, 2) for _ in range(3)], [2, 4, 6])
        self.assertIn(c.ttl("w"), range(50, 61))
        told = "redis.call('set', KEYS[1], 0, 'EX', 60, 'NX') return {redis.call('incrby', KEYS[1], 1), redis.call('pttl', KEYS[1])}"
        (first, left), (second, _) = (c.eval(told, 1, "f") for _ in range(2))
        self.assertEqual((first, second, 50_000 < left <= 60_000), (1, 2, True))
        own = """local owner = redis.call('GET', KEYS[1]) if owner == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return true
            elseif not owner then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return true end return false"""
        self.assertEqual([c.eval(own, 1, "lock", who, 90_000) for who in ("me", "you", "me")], [1, None, 1])
        bucket = """local tokens = tonumber(redis.call('get', KEYS[1])) or tonumber(ARGV[1])
            local since = math.max(0, tonumber(ARGV[2]) - (tonumber(redis.call('get', KEYS[2])) or 0))
            local allowed = tokens + since * 0.5 >= 1
            redis.call('setex', KEYS[1], 60, math.min(tonumber(ARGV[1]), tokens + since * 0.5) - (allowed and 1 or 0))
            redis.call('setex', KEYS[2], 60, ARGV[2]) return {allowed and 1 or 0, redis.call('get', KEYS[1])}"""
        self.assertEqual([c.eval(bucket, 2, "{b}.tokens", "{b}.at", 2, at) for at in (9, 9, 9, 10, 11)],
                         [[1, "1"], [1, "0"], [0, "0"], [0, "0.5"], [1, "0"]])
        slots = """for i, value in pairs(redis.call('mget', unpack(KEYS))) do
            if not value then redis.call('set', KEYS[i], ARGV[1], 'EX', 60) return i end end"""
        self.assertEqual([c.eval(slots, 3, "s1", "s2", "s3", "me") for _ in range(4)], [1, 2, 3, None])
        batch = """local all = {} for i, key in ipairs(KEYS) do all[i] = redis.call('INCRBYFLOAT', key, ARGV[i])
            if redis.call('TTL', key) == -1 then redis.call('EXPIRE', key, 60) end end return all"""
        self.assertEqual([c.eval(batch, 3, "x", "y", "x", 1.5, 2, 3) for _ in range(2)], [["1.5", "2", "4.5"], ["6", "4", "9"]])
        self.assertIn(c.ttl("y"), range(50, 61))

    def test_no_count_of_many_clients_is_lost(self):
        script = "redis.call('SET', KEYS[1], (redis.call('GET', KEYS[1]) or 0) + ARGV[1])"
        connections = [self.other().connection_pool.get_connection("_") for _ in range(8)]
        for connection in connections:
            for _ in range(25):
                connection.send_command("EVAL", script, 1, "n", 1)
        for connection in connections:
            for _ in range(25):
                connection.read_response()
        self.assertEqual(self.client.get("n"), "200")

    # --- walks

    def test_scan_and_keys(self):
        names = {f"user:{i}" for i in range(500)} | {f"other[{i}]" for i in range(20)}
        self.client.mset(dict.fromkeys(names, "v"))
        self.assertEqual(set(self.client.scan_iter()), names)
        self.assertEqual(set(self.client.scan_iter("user:1?")), {f"user:1{i}" for i in range(10)})
        self.assertEqual(sorted(self.client.keys(r"other\[1[0-2]]")), ["other[10]", "other[11]", "other[12]"])
        cursor, found = self.client.scan(0, count=50)
        self.assertNotEqual(cursor, 0)
        self.assertLess(len(found), 520)
        self.assertEqual(self.client.scan(0, _type="list"), (0, []))
        self.refused("invalid cursor", "SCAN", str(1 << 53))
        self.refused("syntax", "SCAN", "0", "COUNT", "0")

    # JavaScript's numbers have 53 bits, and PHP's have a sign.
    def test_cursors_of_scan_are_small(self):
        self.client.mset({f"s{i}": i for i in range(3000)})
        cursor, cursors, found = 0, [], set()
        while cursor != 0 or not cursors:
            cursor, keys = self.client.scan(cursor, count=100)
            found.update(keys)
            cursors.append(cursor)
        self.assertEqual(len(found), 3000)
        self.assertIn(len(cursors), range(10, 60))
        self.assertLess(max(cursors), 1 << 24)

    # --- commands on parts of values, and on several keys

    def test_parts_of_values(self):
        c = self.client
        c.set("s", "Hello World", ex=100)
        self.assertEqual((c.getrange("s", 0, 4), c.getrange("s", -5, -1), c.getrange("s", 5, 2)), ("Hello", "World", ""))
        self.assertEqual((c.setrange("s", 6, "Redis"), c.get("s"), c.setrange("none", 0, "")), (11, "Hello Redis", 0))
        self.assertEqual((c.setrange("z", 2, "x"), c.get("z"), c.exists("none")), (3, "\0\0x", 0))
        self.assertIn(c.ttl("s"), range(40, 101))
        self.assertEqual((c.incrbyfloat("f", 10.5), c.incrbyfloat("f", "-5.25e0"), c.get("f")), (10.5, 5.25, "5.25"))
        self.refused("not a valid float", "INCRBYFLOAT", "s", "1")
        self.refused("NaN or Infinity", "INCRBYFLOAT", "f", "inf")
        self.refused("out of range", "SETRANGE", "s", "-1", "x")
        self.refused("maximum allowed size", "SETRANGE", "s", str(64 << 20), "x")

    def test_several_keys(self):
        c = self.client
        self.assertTrue(c.msetnx({"a": "1", "b": "2"}))
        self.assertFalse(c.msetnx({"b": "3", "c": "3"}))
        self.assertEqual(c.mget("a", "b", "c"), ["1", "2", None])
        c.expire("a", 100)
        self.assertTrue(c.rename("a", "c"))
        self.assertEqual((c.get("c"), c.exists("a"), c.ttl("c") > 90), ("1", 0, True))
        self.assertFalse(c.renamenx("c", "b"))
        self.assertTrue(c.renamenx("c", "d"))
        self.assertEqual((c.copy("d", "b"), c.copy("d", "e"), c.mget("b", "d", "e")), (False, True, ["2", "1", "1"]))
        self.assertTrue(c.rename("d", "d"))
        self.refused("no such key", "RENAME", "none", "a")

    def test_times_to_live_with_conditions(self):
        c = self.client
        c.set("a", "1")
        self.assertEqual((c.expire("a", 50, xx=True), c.expire("a", 50, gt=True), c.ttl("a")), (False, False, -1))
        self.assertEqual((c.expire("a", 50, nx=True), c.expire("a", 60, nx=True)), (True, False))
        self.assertEqual((c.expire("a", 40, gt=True), c.expire("a", 100, gt=True)), (False, True))
        self.assertEqual((c.expire("a", 200, lt=True), c.expire("a", 90, lt=True)), (False, True))
        at, _ = c.time()
        self.assertIn(c.execute_command("EXPIRETIME", "a"), range(at + 85, at + 95))
        self.assertIn(c.execute_command("PEXPIRETIME", "a") // 1000, range(at + 85, at + 95))
        self.assertEqual((c.execute_command("EXPIRETIME", "none"), c.expire("none", 5, nx=True)), (-2, False))
        self.refused("not compatible", "EXPIRE", "a", "5", "NX", "GT")

    def test_what_agents_ask_for(self):
        c = self.client
        self.assertEqual(c.config_get("maxmemory*"), {"maxmemory": "0", "maxmemory-policy": "noeviction"})
        self.assertEqual((c.slowlog_len(), c.slowlog_get(), c.execute_command("LATENCY", "LATEST")), (0, [], []))
        self.assertIn("expired_keys", c.info())
        self.assertEqual((c.execute_command("AUTH", "default", "any"), c.execute_command("SELECT", "0")), (True, True))
        self.refused("without any password configured", "AUTH", "secret")
        self.refused("invalid username-password pair", "AUTH", "somebody", "secret")
        self.refused("out of range", "SELECT", "1")
        with socket.create_connection(("127.0.0.1", self.port)) as probe:
            probe.sendall(b"ping\r\n")
            self.assertEqual(probe.recv(10), b"+PONG\r\n")

    def test_connections_that_are_killed(self):
        with socket.create_connection(("127.0.0.1", self.port)) as one, socket.create_connection(("127.0.0.1", self.port)) as two:
            ids = []
            for other in (one, two):
                other.settimeout(60)
                other.sendall(b"CLIENT ID\r\n")
                ids.append(int(other.recv(100)[1:]))
            self.assertEqual(self.client.client_kill_filter(_id=str(ids[0])), 1)
            self.assertEqual(one.recv(1), b"")
            self.assertTrue(self.client.client_kill("%s:%d" % two.getsockname()))
            self.assertEqual(two.recv(1), b"")
        self.refused("No such client", "CLIENT", "KILL", "127.0.0.1:1")
        own = str(self.client.client_id())
        self.assertEqual(self.client.execute_command("CLIENT", "KILL", "ID", own, "SKIPME", "no"), 1)

    def test_what_tools_ask_for(self):
        c = self.client
        c.mset({"i": "12", "e": "short", "r": "x" * 45})
        self.assertEqual([c.object("encoding", key) for key in ("i", "e", "r", "none")], ["int", "embstr", "raw", None])
        self.refused("not tracked", "OBJECT", "FREQ", "i")
        self.assertGreaterEqual(c.memory_usage("r"), 46)
        self.assertIsNone(c.memory_usage("none"))
        self.assertEqual(c.info()["db0"], {"keys": 3, "expires": 0, "avg_ttl": 0})
        c.expire("e", 100)
        self.assertEqual(c.info()["db0"], {"keys": 3, "expires": 1, "avg_ttl": 0})
        other = self.other()
        other.client_setname("other")
        clients = c.client_list()
        self.assertGreaterEqual(len(clients), 2)
        self.assertIn("other", [one["name"] for one in clients])
        self.refused("cannot contain spaces", "CLIENT", "SETNAME", "a\nid=1")
        for words, what in ((["HGET", "h", "f"], "hashes"), (["LPUSH", "l", "1"], "lists"), (["SADD", "s", "1"], "sets"),
                            (["PUBLISH", "c", "1"], "channels"), (["XADD", "x", "*", "a", "b"], "streams")):
            self.refused(f"Gannet has strings only, and no {what}", *words)


def check_databases(test, port):
    """SELECT at a proxy with three databases. The names in them are in no other one, and memcached sees database 0."""
    zero, one, two = clients = [redis.Redis(port=port, db=number) for number in range(3)]
    for client in clients:
        test.addCleanup(client.close)
    zero.flushall()
    for number, client in enumerate(clients):
        client.mset({f"name{i}": number for i in range(1500)})
        client.set(f"only{number}", "x")
    names = {b"name%d" % i for i in range(1500)}
    for number, client in enumerate(clients):
        own = names | {b"only%d" % number}
        test.assertEqual((client.dbsize(), set(client.keys()), set(client.scan_iter(count=100))), (1501, own, own))
        test.assertEqual((client.get("name7"), client.keys("only*")), (b"%d" % number, [b"only%d" % number]))
    test.assertEqual(zero.config_get("databases"), {"databases": "3"})
    test.assertIn("2", [client["db"] for client in two.client_list()])

    # What one database has for its names is no name of another one.
    inside = b"\0db\x01name7"
    for command in ("GET", "DEL", "INCR"):
        with test.assertRaisesRegex(redis.ResponseError, "database 0 that begins"):
            zero.execute_command(command, inside)
    test.assertEqual((two.set(inside, "x"), two.get(inside), one.get("name7")), (True, b"x", b"1"))
    with socket.create_connection(("127.0.0.1", port)) as memcached, memcached.makefile("rb") as got:
        memcached.sendall(b"get name7\r\nget " + inside + b"\r\n")
        test.assertEqual([got.readline() for _ in range(4)], [b"VALUE name7 0 1\r\n", b"0\r\n", b"END\r\n",
                                                             b"CLIENT_ERROR bad command line format\r\n"])
    test.assertTrue(one.set("k" * 246, "x"))
    with test.assertRaisesRegex(redis.ResponseError, "1 to 246"):
        one.get("k" * 247)

    test.assertTrue(one.flushdb())
    test.assertEqual((zero.dbsize(), one.dbsize(), two.dbsize()), (1501, 0, 1502))
    test.assertEqual((zero.move("only0", 1), one.get("only0"), zero.get("only0")), (True, b"x", None))
    with test.assertRaisesRegex(redis.ResponseError, "out of range"):
        one.execute_command("SELECT", "3")
    test.assertTrue(two.flushall())
    test.assertEqual([client.dbsize() for client in clients], [0, 0, 0])
