#!/usr/bin/env python3
"""What servers that are measured leave behind."""

import os
import socket
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools/bench"))

import servers  # noqa: E402


class RedisTest(unittest.TestCase):
    def test_its_files_are_not_in_the_current_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            before = os.getcwd()
            os.chdir(folder)
            self.addCleanup(os.chdir, before)
            with servers.redis() as address:
                host, port = address.split(":")
                with socket.create_connection((host, int(port))) as connection:
                    connection.sendall(b"SAVE\r\n")
                    self.assertEqual(connection.recv(64), b"+OK\r\n")
                self.assertEqual(os.listdir(), [])


if __name__ == "__main__":
    unittest.main()
