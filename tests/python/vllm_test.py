"""gannet.vllm with a host that does what vLLM's manager of tiers does. Needs nothing of vLLM's.

The module `vllm` is a stand-in with the names that gannet.vllm imports. connectors.py runs the same tests
with vLLM's own classes, loaded by its own factory (GANNET_CONNECTORS).
"""

import dataclasses
import enum
import gc
import mmap
import os
import sys
import threading
import time
import types
import unittest

import gannet
from pool import BLOCK, counted, counter
from server import Server

PATIENT = 30.0  # the machine may be busy
CHUNKS = 32


class SecondaryTierManager:
    def __init__(self, offloading_spec, primary_kv_view, tier_type, backpressure_detector=None):
        self.block_size_bytes = primary_kv_view.strides[0]


@dataclasses.dataclass
class JobResult:
    job_id: int
    success: bool
    successful_keys: object = None
    transfer_time: object = None
    transfer_bytes: object = None


class FileMapper:
    def __init__(self, root, spec):
        self.root = f"{root}/{spec.model}"

    @classmethod
    def from_offloading_spec(cls, root_dir, offloading_spec, blocks_per_file, parallel_agnostic):
        return cls(root_dir, offloading_spec)

    def get_file_name(self, key):
        return f"{self.root}_r0/{key[:-4].hex()}.bin"


LookupResult = enum.Enum("LookupResult", "MISS HIT HIT_PENDING RETRY")
BASE = "vllm.v1.kv_offload"
FOREIGN = "GANNET_CONNECTORS" in os.environ
if FOREIGN:
    from vllm.v1.kv_offload import config as foreign
    from vllm.v1.kv_offload.base import LookupResult
    from vllm.v1.kv_offload.tiering.factory import SecondaryTierFactory
else:
    for name in ("vllm", "vllm.v1", BASE, f"{BASE}.base", f"{BASE}.file_mapper", f"{BASE}.tiering", f"{BASE}.tiering.base"):
        sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[f"{BASE}.base"]).update(LookupResult=LookupResult, RequestOffloadingContext=types.SimpleNamespace,
                                             Locality=enum.Enum("Locality", [("LOCAL", "LOCAL"), ("REMOTE", "REMOTE")]),
                                             Medium=enum.Enum("Medium", "CPU STORAGE"))
    vars(sys.modules[f"{BASE}.file_mapper"]).update(FileMapper=FileMapper)
    vars(sys.modules[f"{BASE}.tiering.base"]).update(JobResult=JobResult, SecondaryTierManager=SecondaryTierManager)

from gannet.vllm import GannetTier  # noqa: E402

KEYS = [bytes([i]) * 32 + bytes(4) for i in range(1, CHUNKS + 1)]


def spec_of(model):
    if not FOREIGN:
        return types.SimpleNamespace(blocks_per_chunk=1, model=model)
    parallel = foreign.OffloadingParallelConfig(
        rank=0, world_size=1, tp_size=1, pp_size=1, pcp_size=1, dcp_size=1, data_parallel_index=0, data_parallel_size=1,
        data_parallel_rank_local=None, is_parallelism_agnostic=True)
    return types.SimpleNamespace(blocks_per_chunk=1, config=foreign.OffloadingConfig(
        groups=(foreign.OffloadingGroupConfig(16, ("layer",), 0),), worker_kv_bytes_per_block=BLOCK, enable_kv_cache_events=False,
        extra_config={}, engine_id="engine", model=foreign.OffloadingModelConfig(model, "bfloat16"),
        cache=foreign.OffloadingCacheConfig(16, 1), parallel=parallel))


def tier_of(spec, view, **options):
    """As vLLM's TieringOffloadingSpec makes it."""
    if FOREIGN:
        return SecondaryTierFactory.create_secondary_tier({"type": "GannetTier", "module_path": "gannet.vllm", **options}, view, spec)
    return GannetTier(offloading_spec=spec, primary_kv_view=view, tier_type="GannetTier", backpressure_detector=None, **options)


def request(name="r"):
    return types.SimpleNamespace(req_id=name)


class Host:
    """A scheduler with a CPU cache of CHUNKS chunks."""

    def __init__(self, address, model="org/model", chunk=BLOCK, **options):
        self.memory = mmap.mmap(-1, CHUNKS * chunk)
        self.view = memoryview(self.memory).cast("B", (CHUNKS, chunk))
        self.tier = tier_of(spec_of(model), self.view, server=address,
                            **{"connect_timeout": PATIENT, "deadline": PATIENT, **options})
        self.jobs = 0

    def fill(self, mark):
        for i in range(CHUNKS):
            self.memory[i * BLOCK:(i + 1) * BLOCK] = bytes([mark + i]) * BLOCK

    def submit(self, keys, chunks, is_promotion):
        self.jobs += 1
        job = types.SimpleNamespace(job_id=self.jobs, keys=keys, chunk_ids=list(chunks), is_promotion=is_promotion,
                                    req_context=request())
        (self.tier.submit_load if is_promotion else self.tier.submit_store)(job)
        return self.jobs

    def run(self, keys, chunks, is_promotion):
        job = self.submit(keys, chunks, is_promotion)
        self.tier.drain_jobs()
        [result] = self.tier.get_finished_jobs()
        assert result.job_id == job
        return result

    def store(self, keys, chunks):
        return self.run(keys, chunks, False)

    def load(self, keys, chunks):
        return self.run(keys, chunks, True)

    def lookup(self, keys, name="r"):
        """Returns what is found of the keys, after as many steps as it takes."""
        end = time.monotonic() + 2 * PATIENT
        while LookupResult.RETRY in (found := [self.tier.lookup(key, request(name)) for key in keys]):
            assert time.monotonic() < end
            self.tier.on_schedule_end(None)
        return [answer is LookupResult.HIT for answer in found]

    def fresh(self, keys):
        """As lookup, for a request of its own."""
        found = self.lookup(keys, "fresh")
        self.tier.on_request_finished(request("fresh"))
        return found


class VllmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def setUp(self):
        with gannet.Client(self.server.address, deadline=PATIENT, connect_timeout=PATIENT) as client:
            client.flush()
        self.host = self.host_of()

    def host_of(self, address=None, **options):
        host = Host(address or self.server.address, **options)
        self.addCleanup(host.tier.shutdown)
        host.fill(1)
        return host

    def test_chunks_come_back_into_other_places(self):
        self.assertEqual(self.host.fresh(KEYS[:16]), [False] * 16)
        stored = self.host.store(KEYS[:16], range(16))
        self.assertEqual((stored.success, stored.transfer_bytes), (True, 16 * BLOCK))
        self.assertGreater(stored.transfer_time, 0)
        self.assertEqual(self.host.fresh(KEYS[:17]), [True] * 16 + [False])
        loaded = self.host.load(KEYS[:16], range(31, 15, -1))
        self.assertEqual((loaded.success, loaded.successful_keys), (True, tuple(KEYS[:16])))
        for i in range(16):
            self.assertEqual(self.host.memory[(31 - i) * BLOCK:(32 - i) * BLOCK], bytes([1 + i]) * BLOCK)

    def test_some_chunks_are_misses(self):
        self.host.store(KEYS[:1] + KEYS[2:3], [0, 2])
        loaded = self.host.load(KEYS[:3], [16, 17, 18])
        self.assertEqual((loaded.success, loaded.successful_keys), (False, (KEYS[0], KEYS[2])))
        self.assertEqual((self.host.memory[17 * BLOCK], self.host.memory[18 * BLOCK]), (18, 3))
        self.assertEqual(self.host.load(KEYS[5:6], [0]).successful_keys, None)

    def test_a_chunk_that_is_there_is_not_stored_again(self):
        self.host.store(KEYS[:1], [0])
        self.assertTrue(self.host.store(KEYS[:2], [8, 9]).success)
        self.host.load(KEYS[:2], [16, 17])
        self.assertEqual((self.host.memory[16 * BLOCK], self.host.memory[17 * BLOCK]), (1, 10))

    def test_a_lookup_does_not_wait(self):
        answer = threading.Event()
        self.addCleanup(answer.set)
        asked = []
        exists = self.host.tier._cache.exists

        def slow(names):
            asked.append(len(names))
            answer.wait(PATIENT)
            return exists(names)
        self.host.tier._cache.exists = slow
        for _ in range(3):
            self.assertEqual([self.host.tier.lookup(key, request()) for key in KEYS[:3]], [LookupResult.RETRY] * 3)
            self.host.tier.on_schedule_end(None)
        answer.set()
        self.assertEqual(self.host.lookup(KEYS[:3]), [False] * 3)
        self.assertEqual(asked, [3])  # in one question

    def test_an_answer_is_kept_while_a_request_needs_it(self):
        self.assertEqual(self.host.lookup(KEYS[:2], "a"), [False] * 2)
        self.assertEqual(self.host.lookup(KEYS[:1], "b"), [False])
        self.host.store(KEYS[:2], [0, 1])
        self.host.tier.on_request_finished(request("a"))
        self.assertEqual(self.host.lookup(KEYS[:2], "b"), [False, True])
        self.host.tier.on_request_finished(request("b"))
        self.host.tier.on_request_finished(request("never seen"))
        self.assertEqual(self.host.lookup(KEYS[:2], "c"), [True] * 2)

    def test_a_request_that_ends_before_its_answer(self):
        self.host.tier.lookup(KEYS[0], request("a"))
        self.host.tier.on_request_finished(request("a"))
        self.host.tier.on_schedule_end(None)
        self.host.tier.lookup(KEYS[0], request("b"))
        self.host.tier.on_schedule_end(None)
        self.host.tier.on_request_finished(request("b"))
        self.assertEqual(self.host.lookup(KEYS[:1], "c"), [False])

    def test_what_did_not_load_is_a_miss_from_then_on(self):
        self.host.store(KEYS[:2], [0, 1])
        self.assertEqual(self.host.lookup(KEYS[:2]), [True] * 2)
        with gannet.Client(self.server.address, deadline=PATIENT) as client:
            self.assertTrue(client.delete(*self.host.tier._names(KEYS[1:2])))
        self.assertFalse(self.host.load(KEYS[:2], [16, 17]).success)
        self.assertEqual(self.host.lookup(KEYS[:2]), [True, False])

    def test_many_jobs_at_a_time(self):
        stores = {self.host.submit(KEYS[i:i + 1], [i], False) for i in range(16)}
        self.host.tier.drain_jobs()
        self.assertEqual({result.job_id for result in self.host.tier.get_finished_jobs()}, stores)
        loads = {self.host.submit(KEYS[i:i + 1], [16 + i], True) for i in range(16)}
        ended = {}
        end = time.monotonic() + 2 * PATIENT
        while loads - set(ended):
            self.assertLess(time.monotonic(), end)
            ended.update((result.job_id, result.success) for result in self.host.tier.get_finished_jobs())
        self.assertEqual(set(ended.values()), {True})
        self.assertEqual(self.host.tier.get_finished_jobs(), [])

    def test_a_job_of_many_chunks(self):
        keys = [i.to_bytes(32, "big") + bytes(4) for i in range(300)]
        self.assertTrue(self.host.store(keys, [i % CHUNKS for i in range(300)]).success)
        self.assertEqual(sum(self.host.fresh(keys)), 300)
        loaded = self.host.load(keys + KEYS[:1], [i % CHUNKS for i in range(301)])
        self.assertEqual((loaded.success, len(loaded.successful_keys)), (False, 300))

    def test_names(self):
        self.host.store(KEYS[:1], [0])
        other, space = self.host_of(model="org/other"), self.host_of(namespace="another")
        long, longer = (self.host_of(model="models/" * 60 + which) for which in "ab")
        for host in (other, space, long, longer):
            self.assertEqual(host.fresh(KEYS[:1]), [False])
        self.assertEqual(self.host_of().fresh(KEYS[:1]), [True])
        self.assertTrue(long.store(KEYS, range(CHUNKS)).success)
        self.assertEqual((long.fresh(KEYS), longer.fresh(KEYS)), ([True] * CHUNKS, [False] * CHUNKS))

    def test_memory_is_registered_once_and_let_go(self):
        self.host.store(KEYS[:16], range(16))
        self.host.load(KEYS[:16], range(16))
        self.assertEqual(self.host.tier._cache.areas(), 1)
        gc.disable()  # what is let go of is so at once
        self.addCleanup(gc.enable)
        self.assertIn("1 keys and 0 buffers", self.host.tier._cache.get_into(["key"], []).error)
        self.host.tier.shutdown()
        self.host.view.release()
        self.host.memory.close()  # raises if somebody has a view of it

    def test_a_server_that_is_killed_is_a_miss_until_it_is_back(self):
        server = Server()
        self.addCleanup(server.kill)
        host = self.host_of(server.address)
        host.store(KEYS, range(CHUNKS))
        with self.assertLogs("gannet", "WARNING") as logged:
            server.kill()
            self.assertEqual(host.fresh(KEYS), [False] * CHUNKS)
            self.assertEqual(host.load(KEYS, range(CHUNKS)).successful_keys, None)
            self.assertFalse(host.store(KEYS, range(CHUNKS)).success)
            self.assertEqual(len(logged.output), 1)
            again = Server(f"--listen={server.address}")
            self.addCleanup(again.kill)
            end = time.monotonic() + 2 * PATIENT
            while not host.store(KEYS, range(CHUNKS)).success:
                self.assertLess(time.monotonic(), end)
        self.assertTrue(host.load(KEYS, range(CHUNKS)).success)

    def test_a_server_that_starts_after_the_host(self):
        server = Server()
        server.kill()
        with self.assertLogs("gannet", "WARNING"):
            host = self.host_of(server.address)
            self.assertEqual(host.fresh(KEYS[:1]), [False])
            again = Server(f"--listen={server.address}")
            self.addCleanup(again.kill)
            end = time.monotonic() + 2 * PATIENT
            while not host.store(KEYS, range(CHUNKS)).success:
                self.assertLess(time.monotonic(), end)
        self.assertEqual(host.tier._cache.areas(), 1)

    def test_a_full_server_evicts(self):
        server = Server("--on_full=evict")
        self.addCleanup(server.kill)
        host = self.host_of(server.address)
        keys = [i.to_bytes(32, "big") + bytes(4) for i in range(1536)]  # 96 MiB into 64
        for i in range(0, 1536, CHUNKS):
            self.assertTrue(host.store(keys[i:i + CHUNKS], range(CHUNKS)).success)
        self.assertIn(sum(host.fresh(keys)), range(100, 1024))

    def test_a_full_server_that_does_not_evict_is_logged_once(self):
        keys = [i.to_bytes(32, "big") + bytes(4) for i in range(1536)]
        with self.assertLogs("gannet", "WARNING") as logged:
            stored = [self.host.store(keys[i:i + CHUNKS], range(CHUNKS)).success for i in range(0, 1536, CHUNKS)]
        self.assertEqual((stored[0], stored[-1]), (True, False))
        self.assertEqual(len(logged.output), 1)
        self.assertIn("ResourceExhausted", logged.output[0])

    def test_a_chunk_that_no_item_holds_is_refused_at_the_start(self):
        with self.assertRaisesRegex(ValueError, "block_size"):
            Host(self.server.address, chunk=(64 << 20) + 1)

    def test_shutdown_ends_its_threads(self):
        before = set(threading.enumerate())
        host = Host(self.server.address)
        host.store(KEYS, range(CHUNKS))
        host.fresh(KEYS)
        self.assertGreater(set(threading.enumerate()), before)
        host.submit(KEYS, range(CHUNKS), True)
        host.tier.shutdown()
        self.assertLessEqual(set(threading.enumerate()), before)

    @unittest.skipUnless(os.environ.get("GANNET_COUNT_COPIES"), "the counter is for x86-64")
    def test_load_copies_no_byte_of_a_chunk(self):
        self.host.store(KEYS, range(CHUNKS))
        self.assertLess(counted("vllm_test", "print_copied", self.server.address)[0], BLOCK)  # of CHUNKS * BLOCK


def print_copied(address):
    """Prints how many bytes this process copies to load all chunks."""
    copied = counter()
    host = Host(address)
    assert host.fresh(KEYS) == [True] * CHUNKS
    before = copied()
    assert host.load(KEYS, range(CHUNKS)).success
    print(copied() - before)
    host.tier.shutdown()


if __name__ == "__main__":
    unittest.main()
