#!/usr/bin/python3
"""What users are told if the device cannot be opened: no_device_test.py BIN_DIR

Uses ibv_devinfo, which says only that it failed.
"""

import os
import resource
import socket
import subprocess
import sys
import unittest

LIMIT_S = 60
USAGE_ERROR = 125
NO_PROC = "/proc is not mounted here, and softverbs needs it (mount -t proc proc /proc)\n"


def start(command, **options):
    environment = options.pop("environment", {})
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          **options)


def in_namespace_without_proc():
    """Returns the words before a command that has no /proc."""
    hide = ["sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    for words in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        if start([*words, *hide, "true"]).returncode == 0:
            return [*words, *hide]
    raise unittest.SkipTest("no namespaces here")


class NoDeviceTest(unittest.TestCase):
    def said(self, **options):
        done = start([os.path.join(BIN, "softverbs-run"), "ibv_devinfo"], **options)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_without_proc_softverbs_run_says_so(self):
        done = start([*in_namespace_without_proc(), os.path.join(BIN, "softverbs-run"), "ibv_devinfo"])
        self.assertEqual((done.returncode, done.stderr), (USAGE_ERROR, "softverbs-run: " + NO_PROC))

    def test_without_proc_the_library_says_so(self):
        dropin = os.path.join(BIN, "..", "lib", "softverbs")
        done = start([*in_namespace_without_proc(), "ibv_devinfo"], environment={"LD_LIBRARY_PATH": dropin})
        self.assertRegex(done.stderr, r"^softverbs\[\d+\]: cannot open softverbs0: ")
        self.assertIn(NO_PROC, done.stderr)

    def test_without_descriptors(self):
        self.assertRegex(self.said(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9))),
                         r"softverbs\[\d+\]: cannot open softverbs0: no file descriptor is left; raise the limit \(ulimit -n\)\n")

    def test_with_an_address_of_another_host(self):
        self.assertIn("Cannot assign requested address. The address is none of this host\n",
                      self.said(environment={"SOFTVERBS_NET": "192.0.2.1"}))

    def test_with_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.assertIn(f"at TCP port {port}: Address already in use. A process that is not softverbs has it",
                          self.said(environment={"SOFTVERBS_NET": f"127.0.0.1:{port}"}))

    # Programs try all devices, or one again and again.
    def test_a_cause_is_told_once(self):
        again = ("import ctypes\n"
                 "verbs = ctypes.CDLL('libibverbs.so.1', use_errno=True)\n"
                 "verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)\n"
                 "verbs.ibv_open_device.restype = ctypes.c_void_p\n"
                 "verbs.ibv_open_device.argtypes = [ctypes.c_void_p]\n"
                 "device = verbs.ibv_get_device_list(None)[0]\n"
                 "print([verbs.ibv_open_device(device) for _ in range(3)])\n")
        done = start([os.path.join(BIN, "softverbs-run"), "/usr/bin/python3", "-c", again], environment={"SOFTVERBS_NET": "192.0.2.1"})
        self.assertEqual(done.stdout, "[None, None, None]\n")
        self.assertEqual(done.stderr.count("cannot listen at TCP port"), 1, done.stderr)


if __name__ == "__main__":
    BIN = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
