#!/usr/bin/python3
"""Random commands at gannet-proxy and at memcached, whose answers are compared: memcached_fuzz.py BIN_DIR [--seed=N] [--seconds=S]

Commands of the text and the meta protocol go to both in pipelines. If two answers differ, the seed and the commands are shown.
What docs/proxy.md says to be different is left out, or made equal by `seen`.
"""

import sys

from peers import compare

KEYS = [b"a", b"b", b"c", b"long" * 20]
# From 2^63 on memcached looks for a sign behind the number, in whatever lies there, and may refuse it. It pads a shorter number with
# blanks, which an append would show. So counters are smaller, and have keys of their own.
COUNTERS = [b"n", b"m"]
NUMBERS = [b"0", b"1", b"-1", b"10", b"99", b"007", b"x", b" 5", b"+5", b"5 x", b"4611686018427387904"]
VALUES = [b"0", b"1", b"-1", b"10", b"99", b"007", b"", b"x", b"18446744073709551615", b"9223372036854775807", b"1.5", b"v" * 300,
          b"w" * 5000, b"\r\n"]
DELTAS = [b"0", b"1", b"5", b"100", b"-1", b"x"]
TIMES = [b"0", b"100", b"-1", b"1000000000", b"2000000000"]


class Commands:
    CLEAR = [b"flush_all\r\n"]
    PROXY = PEER = []

    def __init__(self, rand):
        self.rand = rand

    def sequence(self):
        return [self.one() for _ in range(self.rand.randint(1, 20))]

    def encoded(self, sequence):
        return b"".join(sequence)

    def replies(self, connection, sequence):
        return [reply(connection) for _ in sequence]

    def difference(self, sequence, mine, theirs):
        for i, (command, one, other) in enumerate(zip(sequence, mine, theirs)):
            if one != other:
                return command.split(b" ")[0], f"command {i}, {command}:\n  gannet-proxy: {one}\n  memcached: {other}"
        return None

    def key(self):
        return self.rand.choice(KEYS)

    def counter(self):
        return self.rand.choice(COUNTERS)

    def flags(self, known):
        """Flags of a meta command, each once."""
        rand, flags = self.rand, []
        chosen = rand.sample(known, rand.randint(0, min(4, len(known))))
        if "t" in chosen:  # memcached tells the old time if it is asked before it is told the new one
            chosen.remove("t")
            chosen.append("t")
        for flag in chosen:
            token = {"O": b"opaque%d" % rand.randint(0, 9), "F": b"%d" % rand.choice([0, 7]), "D": rand.choice(DELTAS[:4]),
                     "J": b"%d" % rand.choice([0, 13]), "N": rand.choice([b"0", b"100"]), "T": rand.choice([b"0", b"100"])}
            token["M"] = rand.choice(self.modes)
            flags.append(flag.encode() + token.get(flag, b""))
        return b" ".join([b"", *flags]) if flags else b""

    modes = [b""]

    def one(self):
        """A command, and how many replies with data it has: (bytes, name)."""
        rand, key = self.rand, self.key
        value = rand.choice(VALUES)
        kind = rand.randrange(15)
        if kind == 14:
            number = rand.choice(NUMBERS)
            return b"set %s 3 %s %d\r\n%s\r\n" % (self.counter(), rand.choice(TIMES[:2]), len(number), number)
        if kind < 3:
            return rand.choice([b"get", b"get", b"gat 100"]) + b" " + b" ".join(rand.choice(KEYS + COUNTERS) for _ in range(rand.randint(1, 3))) + b"\r\n"
        if kind < 7:
            name = rand.choice([b"set", b"set", b"add", b"replace", b"append", b"prepend"])
            return b"%s %s %d %s %d\r\n%s\r\n" % (name, key(), rand.choice([0, 9]), rand.choice(TIMES), len(value), value)
        if kind == 7:
            return b"delete %s\r\n" % rand.choice(KEYS + COUNTERS)
        if kind == 8:
            return b"%s %s %s\r\n" % (rand.choice([b"incr", b"decr"]), self.counter(), rand.choice(DELTAS))
        if kind == 9:
            return b"touch %s %s\r\n" % (key(), rand.choice(TIMES))
        if kind == 10:
            return b"mg %s%s\r\n" % (key(), self.flags("fkOsvTt"))
        if kind == 11:
            self.modes = [b"S", b"E", b"R", b"A", b"P"]
            return b"ms %s %d%s\r\n%s\r\n" % (key(), len(value), self.flags("FkOTM"), value)
        if kind == 12:
            return b"md %s%s\r\n" % (key(), self.flags("kO"))
        self.modes = [b"I", b"D", b"+", b"-"]
        return b"ma %s%s\r\n" % (self.counter(), self.flags("DJNTMkOv"))


def reply(connection):
    """The next reply, as a list of lines and data."""
    answer = []
    while True:
        line = connection.line()
        words = line.split(b" ")
        # From 2^63 on memcached looks for a sign behind the number, in whatever lies there, and may refuse it. It pads a shorter number with blanks.
        if words[0] == b"VALUE":
            answer += [words[:3], connection.take(int(words[3]) + 2)[:-2].rstrip(b" ")]
            continue
        if words[0] == b"VA":
            data = connection.take(int(words[1]) + 2)[:-2].rstrip(b" ")
            return [*answer, [b"VA", *seen_flags(words[2:])], data]
        if words[0].endswith(b"ERROR"):
            return [words[0]]
        return [*answer, [words[0], *seen_flags(words[1:])]]


def seen_flags(words):
    """Not the size, of a value that may be padded. Of the time that is left, whether there is an end."""
    return [b"t" if word.startswith(b"t") and word != b"t-1" else word for word in words if not word.startswith(b"s")]


if __name__ == "__main__":
    sys.exit(compare(Commands, "memcached"))
