"""A kvserver for the tests."""

import os
import select
import subprocess

START_SECONDS = 120


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

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
