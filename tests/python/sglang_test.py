"""gannet.sglang with a host that does what SGLang's HiCache does. Needs nothing of SGLang's.

The module `sglang` is a stand-in with the names that gannet.sglang imports. connectors.py runs the same
tests with SGLang's own classes, loaded by its own factory, and PyTorch's tensors (GANNET_CONNECTORS).
"""

import abc
import collections
import enum
import os
import sys
import time
import types
import unittest

import gannet
from pool import BLOCK, Pool, counted, counter
from server import Server

PATIENT = 30.0  # the machine may be busy
TOKENS = 16  # of a page
PAGES = 16


class HiCacheStorage(abc.ABC):
    """The methods that SGLang's class asks for."""

    def register_mem_pool_host(self, mem_pool_host):
        self.mem_pool_host = mem_pool_host

    def register_mem_host_pool_v2(self, host_pool, host_pool_name):
        pass

    get = batch_get = set = batch_set = exists = abc.abstractmethod(lambda self: None)


class PoolName(str, enum.Enum):
    KV = "kv"
    MAMBA = "mamba"
    INDEXER = "indexer"
    DRAFT = "draft"

    def __str__(self):
        return self.value


PoolHitPolicy = enum.Enum("PoolHitPolicy", "ALL_PAGES TRAILING_PAGES BLOCK_GROUPS")
PoolTransferResult = collections.namedtuple("PoolTransferResult", "kv_hit_pages extra_pool_hit_pages restorable_prefix_pages")
Transfer = collections.namedtuple("Transfer", "name keys host_indices hit_policy")

NAME = "sglang.srt.mem_cache.hicache_storage"
FOREIGN = "GANNET_CONNECTORS" in os.environ
if FOREIGN:
    import torch
    from sglang.srt.mem_cache.hicache_storage import HiCacheStorageConfig, PoolHitPolicy, PoolName
    from sglang.srt.mem_cache.hicache_storage import PoolTransfer as Transfer
    from sglang.srt.mem_cache.storage.backend_factory import StorageBackendFactory
else:
    for end in (6, 10, 20, len(NAME)):
        sys.modules[NAME[:end]] = types.ModuleType(NAME[:end])
    vars(sys.modules[NAME]).update(HiCacheStorage=HiCacheStorage, PoolHitPolicy=PoolHitPolicy, PoolName=PoolName,
                                   PoolTransferResult=PoolTransferResult)

from gannet.sglang import Storage  # noqa: E402


def config_of(address, extra=None, **options):
    extra = {"backend_name": "gannet", "module_path": "gannet.sglang", "class_name": "Storage", "interface_v1": 1,
             "server": address, "connect_timeout": PATIENT, "deadline": PATIENT, **(extra or {})}
    return (HiCacheStorageConfig if FOREIGN else types.SimpleNamespace)(**{
        "tp_rank": 0, "tp_size": 1, "pp_rank": 0, "pp_size": 1, "attn_cp_rank": 0, "attn_cp_size": 1, "is_mla_model": False,
        "enable_storage_metrics": False, "is_page_first_layout": True, "model_name": "org/model", "extra_config": extra, **options})


def storage_of(config, pool):
    """As SGLang's controller makes it."""
    if FOREIGN:
        storage = StorageBackendFactory.create_backend("dynamic", config, pool)
    else:
        storage = Storage(config, {})
    storage.register_mem_pool_host(pool)
    return storage


def transfer(name, keys=None, host_indices=None, hit_policy=PoolHitPolicy.ALL_PAGES):
    return Transfer(name=name, keys=keys, host_indices=host_indices, hit_policy=hit_policy)


def indices_of(*pages):
    """Returns the numbers of the pages' tokens."""
    tokens = [page * TOKENS + i for page in pages for i in range(TOKENS)]
    return torch.tensor(tokens, dtype=torch.int64) if FOREIGN else tokens


class HostPool:
    """Keys in one half of its memory, values in the other, as SGLang's page_first layout has them."""

    def __init__(self, layout="page_first", pieces=2, pages=2 * PAGES):
        self.memory = Pool(pages * pieces)
        self.kv_buffer = types.SimpleNamespace(data_ptr=lambda: self.memory.address, numel=lambda: self.memory.size // 2,
                                               element_size=lambda: 2)
        self.page_size, self.layout, self.dtype = TOKENS, layout, "torch.bfloat16"
        self.pieces, self.pages = pieces, pages

    def get_page_buffer_meta(self, indices):
        pages = [int(indices[i]) // TOKENS for i in range(0, len(indices), TOKENS)]
        addresses = [self.memory.address + (piece * self.pages + page) * BLOCK for page in pages for piece in range(self.pieces)]
        return addresses, [BLOCK] * len(addresses)

    def fill(self, mark):
        for page in range(PAGES):
            for piece in range(self.pieces):
                self.memory.view(piece * self.pages + page)[:] = bytes([mark + page, piece]) * (BLOCK // 2)

    def page(self, page):
        return [bytes(self.memory.view(piece * self.pages + page)[:2]) for piece in range(self.pieces)]


class MLATokenToKVPoolHost(HostPool):
    """The name by which gannet.sglang knows pools that are the same in all ranks."""


FIRST = indices_of(*range(PAGES))
SECOND = indices_of(*range(PAGES, 2 * PAGES))
KEYS = [f"{i * 7919:064x}" for i in range(PAGES)]


class SglangTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def setUp(self):
        with gannet.Client(self.server.address, deadline=PATIENT, connect_timeout=PATIENT) as client:
            client.flush()
        self.pool = HostPool()
        self.pool.fill(1)
        self.storage = self.storage_of(self.pool)

    def storage_of(self, pool, address=None, **config):
        storage = storage_of(config_of(address or self.server.address, **config), pool)
        self.addCleanup(storage.close)
        return storage

    def stored(self):
        with gannet.Client(self.server.address, deadline=PATIENT) as client:
            return client.stats()[0]["items"]

    def test_pages_come_back_into_other_places(self):
        self.assertEqual(self.storage.batch_exists(KEYS), 0)
        self.assertEqual(self.storage.batch_set_v1(KEYS, FIRST), [True] * PAGES)
        self.assertEqual(self.storage.batch_exists(KEYS), PAGES)
        self.assertEqual(self.storage.batch_get_v1(KEYS, SECOND, None), [True] * PAGES)
        for page in range(PAGES):
            self.assertEqual(self.pool.page(PAGES + page), [bytes([1 + page, 0]), bytes([1 + page, 1])])
        self.assertEqual(self.stored(), PAGES)  # both pieces of a page are one item
        self.assertEqual(self.storage.batch_get_v1([], indices_of()), [])
        self.assertEqual(self.storage.batch_exists([]), 0)

    def test_exists_counts_to_the_first_gap(self):
        self.storage.batch_set_v1(KEYS[:3] + KEYS[4:6], indices_of(0, 1, 2, 4, 5))
        self.assertEqual(self.storage.batch_exists(KEYS), 3)
        self.assertEqual(self.storage.batch_exists(KEYS[4:]), 2)
        self.assertEqual(self.storage.batch_exists(KEYS[3:]), 0)
        self.assertTrue(self.storage.exists(KEYS[4]))
        self.assertFalse(self.storage.exists(KEYS[3]))

    def test_some_pages_are_misses(self):
        self.storage.batch_set_v1(KEYS[:1] + KEYS[2:3], indices_of(0, 2))
        self.assertEqual(self.storage.batch_get_v1(KEYS[:3], indices_of(16, 17, 18)), [True, False, True])
        self.assertEqual(self.pool.page(17), [bytes(2)] * 2)
        self.assertEqual(self.pool.page(18)[0], bytes([3, 0]))

    def test_a_page_that_is_there_is_not_stored_again(self):
        self.storage.batch_set_v1(KEYS[:2], indices_of(0, 1))
        self.pool.fill(100)
        self.assertEqual(self.storage.batch_set_v1(KEYS[:3], indices_of(0, 1, 2)), [True] * 3)
        self.assertEqual(self.storage.batch_get_v1(KEYS[:3], indices_of(16, 17, 18)), [True] * 3)
        self.assertEqual([self.pool.page(page)[0][0] for page in (16, 17, 18)], [1, 2, 102])

    def test_indices_that_are_not_the_pages_are_misses(self):
        with self.assertLogs("gannet", "ERROR"):
            self.assertEqual(self.storage.batch_set_v1(KEYS[:2], indices_of(0)), [False] * 2)
        self.assertEqual(self.stored(), 0)

    def test_what_pages_depend_on_is_in_their_names(self):
        self.storage.batch_set_v1(KEYS, FIRST)
        same, of_dp = self.storage_of(HostPool()), self.storage_of(HostPool(), dp_rank=1)
        self.assertEqual([same.batch_exists(KEYS), of_dp.batch_exists(KEYS)], [PAGES] * 2)
        for options in ({"model_name": "org/other"}, {"tp_size": 2}, {"tp_rank": 1}, {"pp_size": 2}, {"attn_cp_size": 2},
                        {"extra": {"namespace": "another"}}):
            self.assertEqual(self.storage_of(HostPool(), **options).batch_exists(KEYS), 0, options)
        self.assertEqual(self.storage_of(HostPool("page_first_direct")).batch_exists(KEYS), 0)
        half = HostPool()
        half.dtype = "torch.float16"
        self.assertEqual(self.storage_of(half).batch_exists(KEYS), 0)

    def test_ranks_share_the_pages_that_are_the_same_in_all(self):
        ranks = [self.storage_of(self.pool, is_mla_model=True, tp_rank=rank, tp_size=2) for rank in range(2)]
        for name, pool, shared in (("indexer", HostPool(), True), ("mamba", HostPool(), False), ("draft", HostPool(), False),
                                   ("draft", MLATokenToKVPoolHost(), True)):
            for rank in ranks:
                rank.register_mem_host_pool_v2(pool, PoolName(name))
            keys = [f"{name}{shared}{i}" for i in range(2)]
            self.assertEqual(ranks[0].batch_set_v2([transfer(PoolName(name), keys, indices_of(0, 1))]), {name: [True] * 2})
            got = ranks[1].batch_get_v2([transfer(PoolName(name), keys, indices_of(2, 3))])
            self.assertEqual(got, {name: [shared] * 2})
        ranks[0].batch_set_v1(KEYS, FIRST)
        self.assertEqual(ranks[1].batch_exists(KEYS), PAGES)

    def test_several_pools_in_one_call(self):
        mamba = HostPool(pieces=3)
        mamba.fill(50)
        self.storage.register_mem_host_pool_v2(self.pool, PoolName.KV)
        self.storage.register_mem_host_pool_v2(mamba, PoolName.MAMBA)
        both = [transfer(PoolName.KV, KEYS[:4], indices_of(0, 1, 2, 3)), transfer(PoolName.MAMBA, KEYS[3:4], indices_of(3))]
        self.assertEqual(self.storage.batch_set_v2(both), {"kv": [True] * 4, "mamba": [True]})
        back = [transfer(PoolName.KV, KEYS[:5], indices_of(16, 17, 18, 19, 20)), transfer(PoolName.MAMBA, KEYS[3:4], indices_of(16))]
        self.assertEqual(self.storage.batch_get_v2(back), {"kv": [True] * 4 + [False], "mamba": [True]})
        self.assertEqual(mamba.page(16), [bytes([53, piece]) for piece in range(3)])
        with self.assertLogs("gannet", "ERROR"):
            self.assertEqual(self.storage.batch_get_v2([transfer(PoolName.DRAFT, KEYS[:2], indices_of(0, 1))]), {"draft": [False] * 2})

    def test_prefixes_that_all_pools_serve(self):
        self.storage.register_mem_host_pool_v2(HostPool(), PoolName.MAMBA)
        self.storage.register_mem_host_pool_v2(HostPool(), PoolName.INDEXER)
        self.storage.batch_set_v1(KEYS[:8], indices_of(*range(8)))
        self.storage.batch_set_v2([transfer(PoolName.INDEXER, KEYS[:6], indices_of(*range(6))),
                                   transfer(PoolName.MAMBA, [KEYS[i] for i in (1, 3, 4, 7)], indices_of(1, 3, 4, 7))])
        all_pages = transfer(PoolName.INDEXER)
        last = transfer(PoolName.MAMBA, KEYS[-1:], hit_policy=PoolHitPolicy.TRAILING_PAGES)
        last_two = transfer(PoolName.MAMBA, KEYS[-2:], hit_policy=PoolHitPolicy.TRAILING_PAGES)
        groups = transfer(PoolName.DRAFT, KEYS, hit_policy=PoolHitPolicy.BLOCK_GROUPS)
        for transfers, answer in (([], (8, {"kv": 8}, [1, 2, 3, 4, 5, 6, 7, 8])),
                                  ([all_pages], (6, {"kv": 8, "indexer": 6}, [1, 2, 3, 4, 5, 6])),
                                  ([last], (8, {"kv": 8, "mamba": 8}, [2, 4, 5, 8])),
                                  ([last_two], (5, {"kv": 8, "mamba": 5}, [5])),
                                  ([groups], (8, {"kv": 8}, [1, 2, 3, 4, 5, 6, 7, 8])),
                                  ([all_pages, last], (5, {"kv": 8, "indexer": 6, "mamba": 8}, [2, 4, 5]))):
            self.assertEqual(self.prefixes(KEYS, transfers), answer)
        self.assertEqual(self.prefixes(["none"], [last]), (0, {}, []))

    def prefixes(self, keys, transfers):
        result = self.storage.batch_exists_v2(keys, transfers)
        return result.kv_hit_pages, result.extra_pool_hit_pages, result.restorable_prefix_pages

    def test_a_pool_that_only_numbers_pages_has_them_all(self):
        anchor = HostPool()
        anchor.kv_buffer = None
        storage = self.storage_of(anchor)
        storage.register_mem_host_pool_v2(HostPool(), PoolName.INDEXER)
        self.assertEqual(storage.batch_set_v1(KEYS, FIRST), [True] * PAGES)
        self.assertEqual(storage.batch_get_v1(KEYS, FIRST), [True] * PAGES)
        self.assertEqual(self.stored(), 0)
        storage.batch_set_v2([transfer(PoolName.INDEXER, KEYS[:2], indices_of(0, 1))])
        self.assertEqual(storage.batch_exists_v2(KEYS, [transfer(PoolName.INDEXER)]).kv_hit_pages, 2)

    def test_long_names(self):
        first, second = (self.storage_of(self.pool, model_name="/srv/" + "models/" * 60 + which) for which in "ab")
        self.assertEqual(first.batch_set_v1(KEYS, FIRST), [True] * PAGES)
        self.assertEqual([first.batch_exists(KEYS), second.batch_exists(KEYS)], [PAGES, 0])
        self.assertEqual(first.batch_get_v1(KEYS, SECOND), [True] * PAGES)

    def test_memory_is_registered_once(self):
        self.storage.batch_set_v1(KEYS, FIRST)
        self.storage.batch_get_v1(KEYS, SECOND)
        self.assertEqual(self.storage._cache.areas(), 1)

    def test_a_server_that_is_killed_is_a_miss_until_it_is_back(self):
        server = Server()
        self.addCleanup(server.kill)
        storage = self.storage_of(self.pool, server.address)
        storage.batch_set_v1(KEYS, FIRST)
        with self.assertLogs("gannet", "WARNING") as logged:
            server.kill()
            self.assertEqual(storage.batch_get_v1(KEYS, SECOND), [False] * PAGES)
            self.assertEqual(storage.batch_set_v1(KEYS, FIRST), [False] * PAGES)
            self.assertEqual(storage.batch_exists(KEYS), 0)
            self.assertEqual(storage.batch_exists_v2(KEYS, []).kv_hit_pages, 0)
            self.assertEqual(len(logged.output), 1)
            again = Server(f"--listen={server.address}")
            self.addCleanup(again.kill)
            self.until(lambda: all(storage.batch_set_v1(KEYS, FIRST)))
        self.assertEqual(storage.batch_get_v1(KEYS, SECOND), [True] * PAGES)

    def test_a_server_that_starts_after_the_host(self):
        server = Server()
        server.kill()
        with self.assertLogs("gannet", "WARNING"):
            storage = self.storage_of(self.pool, server.address)
            self.assertEqual(storage.batch_exists(KEYS), 0)
            again = Server(f"--listen={server.address}")
            self.addCleanup(again.kill)
            self.until(lambda: all(storage.batch_set_v1(KEYS, FIRST)))
        self.assertEqual(storage._cache.areas(), 1)

    def test_a_full_server_evicts(self):
        server = Server("--on_full=evict")
        self.addCleanup(server.kill)
        storage = self.storage_of(self.pool, server.address)
        for i in range(48):  # 96 MiB into 64
            self.assertEqual(storage.batch_set_v1([f"{i}.{j}" for j in range(PAGES)], FIRST), [True] * PAGES)
        found = sum(storage.exists(f"{i}.{j}") for i in range(48) for j in range(PAGES))
        self.assertLess(found, 512)
        self.assertGreater(found, 50)

    def test_a_full_server_that_does_not_evict_is_logged_once(self):
        with self.assertLogs("gannet", "WARNING") as logged:
            stored = sum(sum(self.storage.batch_set_v1([f"{i}.{j}" for j in range(PAGES)], FIRST)) for i in range(48))
        self.assertLess(stored, 512)
        self.assertEqual(len(logged.output), 1)
        self.assertIn("ResourceExhausted", logged.output[0])
        self.assertEqual(self.storage.batch_exists(["0.0"]), 1)

    def test_what_cannot_work_is_said_at_the_start(self):
        for extra, text in (({"server": None, "interface_v1": 0}, "interface_v1"), ({}, "server")):
            config = config_of(self.server.address)
            config.extra_config = extra
            with self.assertRaisesRegex(ValueError, text):
                Storage(config, {})
        with self.assertRaisesRegex(ValueError, "page_first"):
            self.storage_of(HostPool("layer_first"))
        for call in (lambda: self.storage.get("k"), lambda: self.storage.set("k"), lambda: self.storage.batch_get(["k"]),
                     lambda: self.storage.batch_set(["k"])):
            with self.assertRaisesRegex(NotImplementedError, "interface_v1"):
                call()

    def test_clear_leaves_what_others_stored(self):
        self.storage.batch_set_v1(KEYS, FIRST)
        with self.assertLogs("gannet", "WARNING"):
            self.assertFalse(self.storage.clear())
        self.assertEqual(self.stored(), PAGES)

    @unittest.skipUnless(os.environ.get("GANNET_COUNT_COPIES"), "the counter is for x86-64")
    def test_get_copies_no_byte_of_a_page(self):
        self.storage.batch_set_v1(KEYS, FIRST)
        self.assertLess(counted("sglang_test", "print_copied", self.server.address)[0], BLOCK)  # of 32 * BLOCK

    def until(self, well):
        end = time.monotonic() + 2 * PATIENT
        while not well():
            self.assertLess(time.monotonic(), end)


def print_copied(address):
    """Prints how many bytes this process copies to get all pages."""
    copied = counter()
    storage = storage_of(config_of(address), HostPool())
    storage.batch_exists(KEYS)
    before = copied()
    assert storage.batch_get_v1(KEYS, FIRST) == [True] * PAGES
    print(copied() - before)


if __name__ == "__main__":
    unittest.main()
