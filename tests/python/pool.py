"""A host's large area of memory, and what the clients of it copy."""

import ctypes
import os
import subprocess
import sys

BLOCK = 64 * 1024


class Pool:
    """Like a host's, its views own nothing and are made anew each time."""

    def __init__(self, blocks):
        self._memory = ctypes.create_string_buffer(blocks * BLOCK)
        self.address = ctypes.addressof(self._memory)
        self.size = blocks * BLOCK

    def view(self, block, size=BLOCK):
        return memoryview((ctypes.c_ubyte * size).from_address(self.address + block * BLOCK)).cast("B")

    def fill(self, mark, n):
        for i in range(n):
            self.view(i)[:] = bytes([mark + i]) * BLOCK


def counted(module, function, *arguments):
    """Returns the numbers that module.function(*arguments) prints in a process whose copies are counted."""
    preload = f"{os.environ.get('LD_PRELOAD', '')}:{os.environ['GANNET_COUNT_COPIES']}"
    code = f"import sys, {module}; {module}.{function}(*sys.argv[1:])"
    printed = subprocess.run([sys.executable, "-B", "-c", code, *arguments], check=True, cwd=os.path.dirname(__file__),
                             env={**os.environ, "LD_PRELOAD": preload}, capture_output=True, text=True, timeout=120).stdout
    return [int(number) for number in printed.split()]


def counter():
    """Returns the function that returns how many bytes this process has copied."""
    copied = ctypes.CDLL(os.environ["GANNET_COUNT_COPIES"]).copied_bytes
    copied.restype = ctypes.c_uint64
    return copied
