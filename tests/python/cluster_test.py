"""Python's clients and the connectors with a group of servers, "cluster:HOST:PORT,HOST:PORT", which loses its primary."""

import argparse
import os
import sys
import tempfile
import unittest

import gannet
import lmcache_test
import sglang_test
import vllm_test
from pool import BLOCK, Pool
from server import Server

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tools", "cluster"))
import local_cluster  # noqa: E402

PATIENT = 60.0  # the machine may be busy, and a call waits for the next primary


class Lmcache:
    KEYS = [f"org/model@00000000@0@{i * 7919:032x}" for i in range(4)]

    def __init__(self, address):
        self.host, self.pool = lmcache_test.Host(address), Pool(8)
        self.close = self.host.connector.close

    def store(self, mark):
        self.pool.fill(mark, 4)
        return self.host.set(self.KEYS, [self.pool.view(i) for i in range(4)]) == (True, "", None)

    def load(self):
        """Returns the first byte of each block, if all are there."""
        assert self.host.exists(self.KEYS) == (True, "", [True] * 4)
        assert self.host.get(self.KEYS, [self.pool.view(4 + i) for i in range(4)]) == (True, "", [True] * 4)
        return [self.pool.view(4 + i)[BLOCK - 1] for i in range(4)]


class Sglang:
    def __init__(self, address):
        self.pool = sglang_test.HostPool()
        self.storage = sglang_test.storage_of(sglang_test.config_of(address), self.pool)
        self.close = self.storage.close

    def store(self, mark):
        self.keys = [f"{mark}-{key}" for key in sglang_test.KEYS[:4]]  # a page that exists is not stored again
        self.pool.fill(mark)
        return self.storage.batch_set_v1(self.keys, sglang_test.indices_of(*range(4))) == [True] * 4

    def load(self):
        assert self.storage.batch_exists(self.keys) == 4
        assert self.storage.batch_get_v1(self.keys, sglang_test.indices_of(*range(16, 20))) == [True] * 4
        return [self.pool.page(16 + i)[0][0] for i in range(4)]


class Vllm:
    def __init__(self, address):
        self.host = vllm_test.Host(address)
        self.close = self.host.tier.shutdown

    def store(self, mark):
        self.keys = [bytes([mark + i]) * 32 + bytes(4) for i in range(4)]
        self.host.fill(mark)
        return self.host.store(self.keys, range(4)).success

    def load(self):
        assert self.host.fresh(self.keys) == [True] * 4
        assert self.host.load(self.keys, range(8, 12)).success
        return [self.host.memory[i * BLOCK] for i in range(8, 12)]


class Plain:
    def __init__(self, address):
        self.client = gannet.Client(address, deadline=PATIENT, connect_timeout=PATIENT)
        self.close = self.client.close

    def store(self, mark):
        return all(self.client.put(f"key{i}", bytes([mark + i])) > 0 for i in range(4))

    def load(self):
        return [value[0] for value in self.client.mget(f"key{i}" for i in range(4))]


KINDS = (Plain, Lmcache, Sglang, Vllm)


class ClusterTest(unittest.TestCase):
    def each(self, address):
        for kind in KINDS:
            one = kind(address)
            self.addCleanup(one.close)
            yield one

    def check(self, those, mark):
        for one in those:
            self.assertTrue(one.store(mark), type(one))
        for one in those:
            self.assertEqual(one.load(), [mark, mark + 1, mark + 2, mark + 3], type(one))

    def test_each_uses_a_group_and_goes_on_with_its_next_primary(self):
        with tempfile.TemporaryDirectory(prefix="gannet-cluster-test-") as folder:
            build = os.path.dirname(os.path.dirname(os.environ["GANNET_KVSERVER"]))
            group = local_cluster.LocalCluster(
                argparse.Namespace(build=build, groups=1, nodes=2, etcd=1, memory="64M", lease_ms=1000), folder)
            self.addCleanup(group.stop)
            group.start_etcd()
            group.start_servers()
            those = list(self.each(group.endpoint()))
            self.check(those, 1)
            primary = group.primary()
            group.processes[primary].kill()
            for one in those:
                self.assertEqual(one.load(), [1, 2, 3, 4], type(one))
            self.check(those, 101)
            self.assertNotEqual(group.primary(), primary)

    # What has no group is one server, so that a configuration need not change when it gets one.
    def test_a_server_alone_is_a_group_of_one(self):
        server = Server()
        self.addCleanup(server.kill)
        self.check(list(self.each("cluster:" + server.address)), 1)


if __name__ == "__main__":
    unittest.main()
