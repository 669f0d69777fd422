"""A kvserver for the tests."""

import os
import select
import signal
import subprocess
import time

# How often a test opens and drops: another server of this process may send the descriptor of its bell meanwhile, once.
DROPS = 3
START_SECONDS = 120


def descriptors():
    """Returns the descriptors of this process, each with what it is of."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.add((fd, os.readlink(f"/proc/self/fd/{fd}")))
        except FileNotFoundError:  # the listing's own
            pass
    return found


def left_open(opened):
    """Waits until these descriptors are closed, which softverbs' thread may do. Returns those that it does not close."""
    end = time.monotonic() + START_SECONDS
    while (left := opened & descriptors()) and time.monotonic() < end:
        select.select([], [], [], 0.01)  # leaves the core to that thread
    return left


class Server:
    """Runs until stop or kill. Has small memory, and does not poll, as the machine may have few cores."""

    def __init__(self, *flags):
        self._process = subprocess.Popen(
            [os.environ["GANNET_KVSERVER"], "--listen=127.0.0.1:0", "--device=soft", "--memory=64M", "--busy_poll_us=0", *flags],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if not select.select([self._process.stdout], [], [], START_SECONDS)[0]:
            self.kill()
            raise RuntimeError("kvserver does not start")
        self.address = self._process.stdout.readline().split()[1]

    def stop(self):
        """Returns when it has stopped."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
