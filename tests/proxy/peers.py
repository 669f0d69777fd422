"""Programs that answer the same commands: gannet-proxy with a server, and the store whose protocol it speaks."""

import argparse
import os
import random
import signal
import socket
import subprocess
import tempfile
import time

LIMIT_S = 60


class Started:
    """Programs that end with the `with` block. A proxy that ends in another way than by SIGTERM is an error."""

    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.children = []
        self.folder = tempfile.TemporaryDirectory(prefix="gannet-differential-")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        codes = []
        for child in reversed(self.children):
            child.send_signal(signal.SIGTERM)
            codes.append((child.args[0], child.wait(LIMIT_S)))
            child.stdout.close()
        self.folder.cleanup()
        proxies = [code for program, code in codes if program.endswith("gannet-proxy")]
        assert not any(proxies), codes

    def _start(self, *argv):
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.children.append(child)
        return child

    def _ready(self, program, *flags):
        child = self._start(os.path.join(self.bin_dir, program), "--device=soft", *flags)
        words = child.stdout.readline().split()
        assert words[:1] == ["READY"], (program, words)
        return words[1]

    def proxy(self, *flags):
        """Returns a function that connects to a proxy of a fresh server."""
        server = self._ready("kvserver", "--listen=127.0.0.1:0", "--memory=64M", "--busy_poll_us=0")
        path = os.path.join(self.folder.name, "proxy.sock")
        self._ready("gannet-proxy", f"--server={server}", f"--listen=unix:{path}", *flags)
        return lambda: Connection(path)

    def redis(self, *flags):
        path = os.path.join(self.folder.name, "redis.sock")
        child = self._start("redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", self.folder.name, *flags)
        for line in child.stdout:
            if "ready to accept connections at" in line:
                return lambda: Connection(path)
        raise RuntimeError("redis-server did not start")

    def memcached(self, *flags):
        path = os.path.join(self.folder.name, "memcached.sock")
        self._start("memcached", "-s", path, "-u", "root", "-m", "64", *flags)
        while True:  # it says nothing when it listens
            try:
                Connection(path).close()
                return lambda: Connection(path)
            except OSError:
                assert self.children[-1].poll() is None, "memcached did not start"


class Connection:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT_S)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def line(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError(f"closed behind {line!r}")
        return line[:-2]

    def take(self, size):
        data = self.file.read(size)
        if len(data) != size:
            raise ConnectionError("closed")
        return data

    def close(self):
        self.file.close()
        self.socket.close()


def compare(commands_of, peer):
    """Sends random commands to a proxy and to the method `peer` of Started, and compares the answers. Returns the exit code.

    commands_of(rand) has: sequence(), some commands; encoded(sequence), what is sent; replies(connection, sequence);
    difference(sequence, mine, theirs), a name for its kind and a text, or None; CLEAR, a sequence that removes all items; PROXY and PEER, the flags of both.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("TEST_SEED", 0)) or random.randrange(1 << 32))
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("GANNET_FUZZ_SECONDS", 3)))
    parser.add_argument("--all", action="store_true", help="show all differences, not only the first one")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    commands = commands_of(random.Random(options.seed))
    count, kinds = 0, set()
    with Started(options.bin_dir) as started:
        sides = [started.proxy(*commands.PROXY)(), getattr(started, peer)(*commands.PEER)()]
        until = time.monotonic() + options.seconds
        while count < 200 or time.monotonic() < until:
            sequence = commands.sequence()
            data = commands.encoded(sequence)
            for side in sides:
                side.send(data)
            answers = [commands.replies(side, sequence) for side in sides]
            count += len(sequence)
            difference = commands.difference(sequence, *answers)
            if difference is None:
                continue
            kind, text = difference
            if kind not in kinds:
                kinds.add(kind)
                print(text, "of", *sequence, sep="\n  ")
            if not options.all:
                return 1
            for side in sides:  # what follows from it is no other one
                side.send(commands.encoded(commands.CLEAR))
                commands.replies(side, commands.CLEAR)
        for side in sides:
            side.close()
    print(f"{count} commands")
    return 1 if kinds else 0
