"""gannet.vllm under vLLM's own manager of tiers, with its own CPU cache. connectors.py runs it: it needs vLLM.

Only what moves blocks between GPU and CPU is missing: the test writes and reads the CPU cache in its place.
"""

import os
import time
import unittest

from vllm.v1.kv_offload.base import LookupResult, ReqContext, ScheduleEndContext
from vllm.v1.kv_offload.cpu.shared_offload_region import SharedOffloadRegion
from vllm.v1.kv_offload.tiering.manager import CPUPrimaryTierOffloadingManager, TieringOffloadingManager

from pool import BLOCK
from server import Server
from vllm_test import PATIENT, spec_of, tier_of

CHUNKS = 8  # of the CPU cache; half as many as there are keys


class Scheduler:
    """Calls the manager as vLLM's scheduler does, step by step."""

    def __init__(self, address):
        region = SharedOffloadRegion(engine_id=f"gannet_test_{os.getpid()}", num_chunks=CHUNKS, rank=None, kv_bytes_per_chunk=BLOCK,
                                     cpu_page_size=BLOCK)
        primary = CPUPrimaryTierOffloadingManager(num_chunks=CHUNKS, mmap_region=region)
        self.memory = primary.get_kv_memoryview().cast("B")
        self.tier = tier_of(spec_of("org/model"), primary.get_kv_memoryview(), server=address, connect_timeout=PATIENT, deadline=PATIENT)
        self.manager = TieringOffloadingManager(primary, [self.tier])
        self.requests = 0

    def close(self):
        self.memory = None
        self.manager.shutdown()

    def request(self):
        self.requests += 1
        context = ReqContext(f"request{self.requests}")
        self.manager.on_new_request(context)
        return context

    def step(self):
        self.manager.on_schedule_end(ScheduleEndContext((), ()))

    def store(self, keys, marks):
        """Offloads a chunk for each key, filled with its mark."""
        context = self.request()
        end = time.monotonic() + 2 * PATIENT
        while (prepared := self.manager.prepare_store(keys, context)) is None:  # chunks are still read by the tier
            assert time.monotonic() < end
            self.step()
        assert list(prepared.keys_to_store) == list(keys)
        for chunk, mark in zip(prepared.store_spec.chunk_ids, marks):
            self.memory[int(chunk) * BLOCK:(int(chunk) + 1) * BLOCK] = bytes([mark]) * BLOCK
        self.manager.complete_store(keys, context)
        self.manager.on_request_finished(context)
        self.step()

    def look_up(self, keys, context):
        """Returns what is known of the keys when nothing is in flight any more."""
        end = time.monotonic() + 2 * PATIENT
        while True:
            found = [self.manager.lookup(key, context) for key in keys]
            if not {LookupResult.RETRY, LookupResult.HIT_PENDING}.intersection(found):
                return [one is LookupResult.HIT for one in found]
            assert time.monotonic() < end, found
            self.step()

    def load(self, keys):
        """Returns the first and last byte of each chunk, or None for those that are misses."""
        # While the tier reads all chunks, there is no room to load others, and the manager calls those misses.
        self.tier.drain_jobs()
        context = self.request()
        there = [key for key, hit in zip(keys, self.look_up(keys, context)) if hit]
        bytes_of = {}
        if there:
            spec = self.manager.prepare_load(there, context)
            for key, chunk in zip(there, spec.chunk_ids):
                row = self.memory[int(chunk) * BLOCK:(int(chunk) + 1) * BLOCK]
                bytes_of[key] = (row[0], row[-1])
            self.manager.complete_load(there, context)
        self.manager.on_request_finished(context)
        self.step()
        return [bytes_of.get(key) for key in keys]


class VllmManagerTest(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.kill)
        self.scheduler = Scheduler(self.server.address)
        self.addCleanup(self.scheduler.close)
        self.keys = [bytes([i]) * 32 + bytes(4) for i in range(1, 2 * CHUNKS + 1)]

    def test_what_the_cpu_cache_evicted_comes_back_from_gannet(self):
        first, second = self.keys[:CHUNKS], self.keys[CHUNKS:]
        self.scheduler.store(first, range(1, 1 + CHUNKS))
        self.scheduler.store(second, range(101, 101 + CHUNKS))  # evicts the first
        self.assertEqual(self.scheduler.load(first[:4]), [(i, i) for i in range(1, 5)])
        self.assertEqual(self.scheduler.load(second[4:]), [(i, i) for i in range(105, 109)])
        self.assertEqual(self.scheduler.load([first[5], b"\xff" * 36]), [(6, 6), None])

    def test_a_server_that_dies_makes_chunks_misses_and_the_cpu_cache_goes_on(self):
        first, second = self.keys[:CHUNKS], self.keys[CHUNKS:]
        self.scheduler.store(first, range(1, 1 + CHUNKS))
        self.scheduler.load(first)
        self.server.kill()
        self.scheduler.store(second, range(101, 101 + CHUNKS))
        self.assertEqual(self.scheduler.load(first[:2]), [None, None])
        self.assertEqual(self.scheduler.load(second), [(i, i) for i in range(101, 101 + CHUNKS)])


if __name__ == "__main__":
    unittest.main()
