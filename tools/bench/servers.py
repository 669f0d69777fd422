"""Starts servers on loopback for measurements, and stops them by their process id."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))
import local_cluster  # noqa: E402

STOP_SECONDS = 10
START_SECONDS = 120


class DidNotStart(Exception):
    pass


def stop(process):
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def softverbs(build):
    """Returns the environment that makes a program use softverbs, if it does not choose a device itself."""
    return {"LD_LIBRARY_PATH": os.path.join(build, "lib/softverbs")}


@contextlib.contextmanager
def ready_server(command):
    """Starts a server that prints READY and its address. Gives the address."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    try:
        ready = process.stdout.readline().split()
        if ready[:1] != ["READY"]:
            raise DidNotStart(" ".join(command))
        yield ready[1]
    finally:
        stop(process)


def gannet(build, *flags):
    """Starts a kvserver on softverbs."""
    return ready_server([f"{build}/bin/kvserver", "--listen=127.0.0.1:0", "--device=soft", *flags])


def free_port():
    return local_cluster.free_ports(1)[0]


def accepts(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def tcp_server(command_of, environment=None):
    """Starts a server with command_of(port), on a free port. Gives its address."""
    port = free_port()
    command = command_of(str(port))
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not accepts(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise DidNotStart(" ".join(command))
            time.sleep(0.02)
        yield f"127.0.0.1:{port}"
    finally:
        stop(process)


@contextlib.contextmanager
def redis():
    # A replica keeps what its primary sends first in a file, whatever --save says.
    with tempfile.TemporaryDirectory(prefix="gannet-redis-") as folder, \
            tcp_server(lambda port: ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",
                                     "--appendonly", "no", "--dir", folder]) as address:
        yield address


def memcached(megabytes):
    # One thread, as the other servers have. memcached refuses to run as root unless it is told to.
    user = ["-u", "root"] if os.geteuid() == 0 else []
    return tcp_server(lambda port: ["memcached", "-l", "127.0.0.1", "-p", port, "-t", "1",
                                    "-m", str(megabytes), *user])
