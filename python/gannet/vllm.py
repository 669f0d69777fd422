"""vLLM keeps blocks of its KV cache in Gannet, as the second tier behind its CPU cache.

    {"type": "GannetTier", "module_path": "gannet.vllm", "server": "10.0.0.1:7471"}

docs/connectors.md has the options. vLLM calls a tier a chunk what the docs of its cache call a block.
"""

import collections
import concurrent.futures
import time
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Set, Tuple, Union

from vllm.v1.kv_offload.base import Locality, LookupResult, Medium, RequestOffloadingContext
from vllm.v1.kv_offload.file_mapper import FileMapper
from vllm.v1.kv_offload.tiering.base import JobResult, SecondaryTierManager

from gannet.cache import VALUE_BYTES_MAX, Cache, Outcome, Pieces

__all__ = ["GannetTier"]

# A job of more chunks is several calls, so that a deadline is that of so many.
_CALL_CHUNKS_MAX = 128


class GannetTier(SecondaryTierManager):
    """Runs jobs and lookups in threads, which sleep without work.

    `server` is "HOST:PORT", or a list of these, or these with commas between them. `workers` loads and
    as many stores run at a time. `namespace` is for what must not be shared. The other options are those
    of gannet.cache.Cache.

    The scheduler's thread calls it. No call waits for a server but drain_jobs and shutdown, and none
    raises because of one: its chunks are misses.
    """

    medium = Medium.CPU

    def __init__(self, offloading_spec: Any, primary_kv_view: memoryview, tier_type: str, server: Union[str, Sequence[str]],
                 *, workers: int = 4, namespace: str = "vllm", locality: str = "REMOTE", backpressure_detector: Any = None,
                 **options: Any) -> None:
        super().__init__(offloading_spec, primary_kv_view, tier_type, backpressure_detector)
        if self.block_size_bytes > VALUE_BYTES_MAX:
            raise ValueError(f"gannet: a chunk has {self.block_size_bytes} bytes, and an item at most {VALUE_BYTES_MAX}; "
                             "choose a smaller block_size")
        self.locality = Locality(locality)
        # Its names tell chunks apart whose bytes cannot be exchanged: model, type, parallelism, layout.
        self._mapper = FileMapper.from_offloading_spec(namespace, offloading_spec,
                                                       blocks_per_file=offloading_spec.blocks_per_chunk,
                                                       parallel_agnostic=True)
        self._memory: Optional[memoryview] = primary_kv_view.cast("B")
        self._cache = Cache(server, log_errors=True, **options)
        self._cache.register(self._memory)
        self._lookups = _Lookups(lambda keys: self._cache.exists(self._names(keys)).each)
        # Two pools, so that loads, which requests wait for, do not wait for stores.
        self._loads = concurrent.futures.ThreadPoolExecutor(workers, "gannet-vllm-load")
        self._stores = concurrent.futures.ThreadPoolExecutor(workers, "gannet-vllm-store")
        self._running: Dict["concurrent.futures.Future[Any]", Any] = {}  # with their jobs

    # --- requests

    def on_new_request(self, req_context: Any) -> Any:
        return RequestOffloadingContext()

    def lookup(self, key: bytes, req_context: Any) -> Any:
        found = self._lookups.find(key, req_context.req_id)
        if found is None:
            return LookupResult.RETRY
        return LookupResult.HIT if found else LookupResult.MISS

    def on_schedule_end(self, context: Any) -> None:
        self._lookups.ask()

    def on_request_finished(self, req_context: Any) -> None:
        self._lookups.forget(req_context.req_id)

    # --- jobs

    def submit_store(self, job_metadata: Any) -> None:
        self._running[self._stores.submit(self._store, job_metadata)] = job_metadata

    def submit_load(self, job_metadata: Any) -> None:
        self._running[self._loads.submit(self._load, job_metadata)] = job_metadata

    def get_finished_jobs(self) -> List[Any]:
        ended = [future for future in self._running if future.done()]
        results = []
        for future in ended:
            job = self._running.pop(future)
            result = future.result()
            results.append(result)
            if job.is_promotion and not result.success:
                # Otherwise the scheduler would have them loaded again and again.
                self._lookups.mark_missing(set(job.keys).difference(result.successful_keys or ()))
        return results

    def drain_jobs(self) -> None:
        concurrent.futures.wait(self._running)

    def shutdown(self) -> None:
        """Waits for the jobs that run, drops the others, and lets go of vLLM's memory."""
        self._lookups.close()
        for threads in (self._loads, self._stores):
            threads.shutdown(cancel_futures=True)
        self._cache.close()
        self._memory = None

    # --- in the threads

    def _store(self, job: Any) -> Any:
        begun = time.monotonic()
        _, error = self._in_calls(self._cache.put_missing, job)
        return JobResult(job.job_id, not error, transfer_time=time.monotonic() - begun,
                         transfer_bytes=len(job.keys) * self.block_size_bytes)

    def _load(self, job: Any) -> Any:
        begun = time.monotonic()
        loaded, _ = self._in_calls(self._cache.get_into, job)
        return JobResult(job.job_id, all(loaded), tuple(key for key, there in zip(job.keys, loaded) if there) or None,
                         transfer_time=time.monotonic() - begun, transfer_bytes=sum(loaded) * self.block_size_bytes)

    def _in_calls(self, call: Callable[[List[str], List[Pieces]], Outcome], job: Any) -> Tuple[List[bool], str]:
        """Makes the calls of a job until one has only errors. Returns what became of each chunk."""
        names, chunks = self._names(job.keys), [self._chunk(int(i)) for i in job.chunk_ids]
        each: List[bool] = []
        error = ""
        for first in range(0, len(names), _CALL_CHUNKS_MAX):
            part = slice(first, first + _CALL_CHUNKS_MAX)
            outcome = call(names[part], chunks[part])
            each += outcome.each
            error = error or outcome.error
            if not outcome.ok:
                break
        return each + [False] * (len(names) - len(each)), error

    def _names(self, keys: Any) -> List[str]:
        return [self._mapper.get_file_name(key) for key in keys]

    def _chunk(self, i: int) -> memoryview:
        return self._memory[i * self.block_size_bytes:(i + 1) * self.block_size_bytes]


class _Lookups:
    """What the store answered of the keys that requests ask for. One thread calls it.

    The keys of a step are one question, which a thread asks. An answer is kept until no request that
    asked is left.
    """

    def __init__(self, exists: Callable[[List[bytes]], List[bool]]) -> None:
        self._exists = exists
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "gannet-vllm-lookup")
        self._found: Dict[bytes, Optional[bool]] = {}  # None: not answered yet
        self._requests: Dict[bytes, Set[str]] = {}  # that asked for the key
        self._keys: Dict[str, List[bytes]] = {}  # of the request
        self._next: List[bytes] = []
        self._asked: Deque[Tuple[List[bytes], "concurrent.futures.Future[List[bool]]"]] = collections.deque()

    def find(self, key: bytes, request: str) -> Optional[bool]:
        """Returns whether the key exists, or None if that is not known yet."""
        self._take()
        if key not in self._found:
            self._found[key] = None
            self._next.append(key)
        requests = self._requests.setdefault(key, set())
        if request not in requests:
            requests.add(request)
            self._keys.setdefault(request, []).append(key)
        return self._found[key]

    def ask(self) -> None:
        """Asks for the keys that came since the last time."""
        keys, self._next = [key for key in self._next if key in self._found], []
        if keys:
            self._asked.append((keys, self._thread.submit(self._exists, keys)))

    def mark_missing(self, keys: Set[bytes]) -> None:
        for key in keys:
            if key in self._found:
                self._found[key] = False

    def forget(self, request: str) -> None:
        """Forgets what only this request asked for."""
        for key in self._keys.pop(request, ()):
            self._requests[key].discard(request)
            if not self._requests[key]:
                del self._requests[key], self._found[key]

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)

    def _take(self) -> None:
        while self._asked and self._asked[0][1].done():
            keys, answer = self._asked.popleft()
            for key, found in zip(keys, answer.result()):
                if self._found.get(key, True) is None:
                    self._found[key] = found
