#!/usr/bin/python3
"""Random commands at gannet-proxy and at redis-server, whose answers are compared: redis_fuzz.py BIN_DIR [--seed=N] [--seconds=S]

Commands go to both in pipelines, some of them in transactions with watched keys. If two answers differ, the seed and the
commands before them are shown. What docs/proxy.md says to be different is left out, or made equal by `seen`.
"""

import sys

from peers import compare

KEYS = [b"a", b"b", b"c", b"d", b"long" * 20]
LINE_MAX = 64 << 10
NUMBERS = [b"0", b"1", b"-1", b"5", b"-7", b"10", b"007", b"-0", b"+1", b" 1", b"1 ", b"", b"x", b"1.5", b"9223372036854775807",
           b"-9223372036854775808", b"9223372036854775808", b"4294967296", b"00"]
VALUES = NUMBERS + [b"word", b"3.0e3", b"-0.1", b"nan", b"inf", b"\r\n\x00", b"v" * 300, b"w" * 5000]
SPANS = [b"100", b"1000", b"0", b"-1", b"x", b"9223372036854775807", b"9223372036854775", b"100000000000", b"-9223372036854775808"]
PATTERNS = [b"*", b"", b"a", b"[a-c]", b"?", b"long*", b"[^a]", b"\\a", b"nothing"]
# Their answers differ by time or on purpose, or they are about all keys or the connection, or use a key that the script was not
# given: commands behind the script do not wait for that one.
NOT_IN_SCRIPTS = {b"TTL", b"EXPIRETIME", b"KEYS", b"DBSIZE", b"FLUSHALL", b"FLUSHDB", b"SELECT", b"OBJECT", b"MOVE"}


class Commands:
    CLEAR = [[b"FLUSHALL"]]
    PROXY = ["--databases=4"]
    PEER = ["--databases", "4"]

    def __init__(self, rand):
        self.rand = rand

    def encoded(self, sequence):
        return b"".join(self.bytes_of(command) for command in sequence)

    def bytes_of(self, command):
        line = inline(command) if self.rand.random() < 0.1 else b""
        return line if 0 < len(line) < LINE_MAX else encoded(command)

    def replies(self, connection, sequence):
        return [reply(connection) for _ in sequence]

    def difference(self, sequence, mine, theirs):
        return first_difference(sequence, mine, theirs)

    def key(self):
        return self.rand.choice(KEYS)

    def value(self):
        return self.rand.choice(VALUES)

    def number(self):
        return self.rand.choice(NUMBERS)

    def case(self, word):
        return word if self.rand.random() < 0.9 else word.lower()

    def moment(self, unit):
        """A time for EX, PX, EXAT or PXAT. Those that are near are left out, as the answers take a while."""
        if self.rand.random() < 0.5:
            return self.rand.choice(SPANS if unit != b"PX" else SPANS[2:])
        if unit.endswith(b"AT"):
            return str(self.rand.choice([1, 1000, 4102444800]) * (1000 if unit == b"PXAT" else 1)).encode()
        return b"5000" if unit == b"EX" else b"5000000"

    def database(self):
        return self.rand.choice([b"0", b"0", b"0", b"1", b"2", b"3", b"4", b"-1", b"x", b""])

    def set_options(self):
        options = []
        for _ in range(self.rand.choice([0, 0, 1, 1, 2, 3])):
            option = self.rand.choice([b"NX", b"XX", b"GET", b"KEEPTTL", b"EX", b"PX", b"EXAT", b"PXAT", b"bad"])
            options.append(self.case(option))
            if option in (b"EX", b"PX", b"EXAT", b"PXAT"):
                options.append(self.moment(option))
        return options

    def script(self):
        """EVAL of a script of random commands, which keeps their answers in `a`."""
        rand, lines = self.rand, []
        for _ in range(rand.randint(1, 6)):
            command = self.one()
            while command[0].upper() in NOT_IN_SCRIPTS or b"DB" in command:
                command = self.one()
            call = f"redis.{rand.choice(['call', 'pcall', 'pcall'])}({', '.join(map(lua, command))})"
            lines.append(rand.choice([f"a[#a + 1] = {call}", f"a[#a + 1] = {call}", call, f"a[#a + 1] = pcall(function() {call} end)",
                                      f"local r = {call} if type(r) == 'table' and r.err then a[#a + 1] = 'failed' else a[#a + 1] = r end",
                                      f"if redis.call('EXISTS', {lua(self.key())}) == 1 then {call} end"]))
        end = rand.choice(["return a"] * 6 + ["return a[1]", "return #a", "return {a, {1.9, -1.9, true, false, 'x'}}", "return {1, nil, 2}",
                           "return {ok = 'fine'}", "return {err = 'BAD thing'}", "return redis.error_reply('MY thing')", "return",
                           "return redis.error_reply('thing')", "return redis.status_reply('fine')", "return tonumber(ARGV[1])",
                           "return ARGV[1] .. KEYS[1]", "return {KEYS, ARGV}", "return nosuch", "nosuch = 1", "return nil + 1", "error('why')",
                           "error({err = 'MY own'})", "return {", "return redis.sha1hex(KEYS[2])", "return 1e300", "return {a = 1}",
                           "return cjson.encode({1, 2.5, {x = ARGV[1]}, cjson.null, true})", "return cjson.decode(ARGV[1])",
                           "return cjson.decode(cjson.encode({{1, 2}, 'x', 2.5, {}}))",
                           "return redis.call('SELECT2')", "return redis.call()", "return redis.pcall({})", "return redis.call('EVAL', 'return 1', 0)",
                           "return string.format('%d', ARGV[1])", "return {string.find(KEYS[5], 'n+g')}"])
        keys = rand.choice([[b"5", *KEYS]] * 8 + [[b"0", *KEYS], [b"6", *KEYS], [b"-1"], [b"x"], [b"2", *KEYS]])
        return [b"EVAL", "\n".join(["local a = {}", *lines, end]).encode(), *keys, rand.choice([b"7", b"word"])]

    def one(self):
        rand, key, value = self.rand, self.key, self.value
        kind = rand.randrange(40)
        if kind < 5:
            return [b"SET", key(), value(), *self.set_options()]
        if kind < 8:
            return [b"GET", key()]
        if kind == 8:
            return [rand.choice([b"SETNX", b"GETSET", b"APPEND", b"INCRBY", b"DECRBY", b"INCRBYFLOAT"]), key(), value()]
        if kind == 9:
            unit = rand.choice([b"EX", b"PX"])
            return [{b"EX": b"SETEX", b"PX": b"PSETEX"}[unit], key(), self.moment(unit), value()]
        if kind == 10:
            return [rand.choice([b"INCR", b"DECR", b"STRLEN", b"TYPE", b"PERSIST", b"GETDEL"]), key()]
        if kind == 11:
            return [rand.choice([b"DEL", b"UNLINK", b"EXISTS", b"TOUCH", b"MGET"]), *[key() for _ in range(rand.randint(1, 4))]]
        if kind == 12:
            return [rand.choice([b"MSET", b"MSETNX"]), *[word for _ in range(rand.randint(1, 3)) for word in (key(), value())]]
        if kind == 13:
            return [rand.choice([b"GETRANGE", b"SUBSTR"]), key(), self.number(), self.number()]
        if kind == 14:
            return [b"SETRANGE", key(), rand.choice([b"0", b"1", b"3", b"400", b"-1", b"x"]), value()]
        if kind in (15, 16):
            unit = rand.choice([b"EXPIRE", b"PEXPIRE", b"EXPIREAT", b"PEXPIREAT"])
            as_option = {b"EXPIRE": b"EX", b"PEXPIRE": b"PX", b"EXPIREAT": b"EXAT", b"PEXPIREAT": b"PXAT"}[unit]
            conditions = rand.sample([b"NX", b"XX", b"GT", b"LT"], rand.choice([0, 0, 0, 1, 2]))
            if b"GT" not in conditions and b"LT" not in conditions:
                return [unit, key(), self.moment(as_option), *conditions]
            # Moments that are nearer than 50 ms count as the same, and none is beyond the longest time to live.
            span = rand.randint(1, 10**6) * 100 + (4 * 10**9 if unit.endswith(b"AT") else 0)
            return [unit, key(), str(span * (1000 if unit.startswith(b"P") else 1)).encode(), *conditions]
        if kind == 17:
            return [rand.choice([b"TTL", b"EXPIRETIME"]), key()]
        if kind == 18:
            option = rand.choice([b"EX", b"PX", b"EXAT", b"PXAT"])
            return [b"GETEX", key(), *rand.choice([[], [b"PERSIST"], [option, self.moment(option)], [b"bad"]])]
        if kind == 19:
            return [rand.choice([b"RENAME", b"RENAMENX"]), key(), key()]
        if kind == 20:
            return [b"COPY", key(), key(), *rand.choice([[], [b"REPLACE"], [b"bad"], [b"DB", self.database(), b"replace"], [b"DB", self.database()], [b"DB"]])]
        if kind == 21:
            return [b"KEYS", rand.choice(PATTERNS)]
        if kind == 22:
            return rand.choice([[b"DBSIZE"], [b"PING"], [b"PING", b"x"], [b"ECHO", value()], [b"FLUSHALL"], [b"FLUSHDB"], [b"SELECT", self.database()],
                                [b"MOVE", key(), self.database()]])
        if kind == 23:
            return [b"OBJECT", rand.choice([b"ENCODING", b"REFCOUNT"]), key()]
        if kind == 24:
            return [rand.choice([b"GET", b"SET", b"DEL", b"INCR", b"MSET", b"EXPIRE", b"NOSUCH"])]
        return self.one()

    def sequence(self):
        """Commands, each a list of words. Some are a transaction."""
        rand = self.rand
        if rand.random() < 0.7:
            return [self.script() if rand.random() < 0.1 else self.one() for _ in range(rand.randint(1, 20))]
        commands = []
        if rand.random() < 0.8:
            commands.append([b"WATCH", *[self.key() for _ in range(rand.randint(1, 3))]])
            commands += rand.choice([[], [[b"SET", self.key(), self.value()]], [[b"DEL", self.key()]], [[b"GET", self.key()]],
                                     [[b"GETEX", self.key(), b"PERSIST"]], [[b"APPEND", self.key(), b"1"]]])
        commands.append([b"MULTI"])
        commands += [self.script() if rand.random() < 0.1 else self.one() for _ in range(rand.randint(0, 6))]
        commands.append([rand.choice([b"EXEC", b"EXEC", b"EXEC", b"DISCARD"])])
        return commands


def lua(word):
    """The word as a script writes it."""
    if word in KEYS:
        return f"KEYS[{KEYS.index(word) + 1}]"
    return '"' + "".join(f"\\{byte:03d}" for byte in word) + '"'


def inline(command):
    """The command as a line with quoted words."""
    def quoted(word):
        return b'"' + b"".join(b"\\x%02x" % byte if byte in b'\r\n\0"\\' else bytes([byte]) for byte in word) + b'"'
    return b" \t".join([command[0], *map(quoted, command[1:])]) + b"\r\n"


def encoded(command):
    return b"*%d\r\n" % len(command) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in command)


def reply(connection):
    """The next reply: an error is its first word, as texts differ."""
    line = connection.line()
    mark, rest = line[:1], line[1:]
    if mark == b"$":
        return None if rest == b"-1" else (connection.take(int(rest) + 2)[:-2])
    if mark == b"*":
        return "no array" if rest == b"-1" else [reply(connection) for _ in range(int(rest))]
    if mark == b"-":
        return ("error", rest.split(b" ")[0])
    return (mark, int(rest) if mark == b":" else rest)


def seen(command, answer):
    """What is compared of an answer."""
    name = command[0].upper()
    if name == b"KEYS" and isinstance(answer, list):
        return sorted(answer)
    if name == b"DBSIZE":
        return "size"  # Redis counts items whose time is over until it looks at them
    if name == b"OBJECT" and command[1] == b"REFCOUNT" and isinstance(answer, tuple):
        return answer[0]  # Redis shares small numbers
    if name == b"OBJECT" and isinstance(answer, bytes):
        return "encoding"  # Redis' depends on how the value was made
    if name in (b"TTL", b"EXPIRETIME") and isinstance(answer, tuple) and answer[0] == b":":
        return min(answer[1], 1 << 36)  # no item lives longer here
    return answer


def near(command, one, other):
    """Times may differ by what the answers took."""
    name = command[0].upper()
    times = name in (b"TTL", b"EXPIRETIME") and isinstance(one, int) and isinstance(other, int)
    return one == other or (times and abs(one - other) <= 1)


def first_difference(commands, left, right):
    """Returns the name of the first command whose answers differ, and a text, or None."""
    queued = []
    for i, (command, one, other) in enumerate(zip(commands, left, right)):
        name = command[0].upper()
        pairs = [(command, one, other)]
        if name == b"MULTI":
            queued = []
        elif one == (b"+", b"QUEUED"):
            queued.append(command)
        if name == b"EXEC" and isinstance(one, list) and isinstance(other, list):
            pairs = list(zip(queued, one, other)) if len(one) == len(other) == len(queued) else pairs
        for of, mine, redis in pairs:
            if not near(of, seen(of, mine), seen(of, redis)):
                return of[0], f"command {i}, {of}:\n  gannet-proxy: {mine!r}\n  redis-server: {redis!r}"
    return None


if __name__ == "__main__":
    sys.exit(compare(Commands, "redis"))
