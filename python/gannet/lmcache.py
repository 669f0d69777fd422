"""LMCache keeps KV blocks in Gannet: its L2 adapter `native_plugin` loads this module.

    {"type": "native_plugin", "module_path": "gannet.lmcache", "class_name": "Connector",
     "adapter_params": {"server": "10.0.0.1:7471"}}

docs/connectors.md has the options. It uses nothing of LMCache's, and needs Python 3.10.
"""

import collections
import concurrent.futures
import itertools
import os
import threading
from typing import Any, Callable, Deque, List, Optional, Sequence, Tuple, Union

from gannet.cache import Cache, Outcome

__all__ = ["Completion", "Connector"]

# Its number, whether it went well, the text of an error, and the answer for each key.
Completion = Tuple[int, bool, str, Optional[List[bool]]]


class Connector:
    """Runs batches of keys in threads, and tells of their ends through a descriptor.

    `server` is "HOST:PORT", or a list of these, or these with commas between them. `workers` batches
    run at a time. `ttl` (seconds) is the life of an item; without it the server's eviction ends it.
    A thread without a batch sleeps.

    Any thread may call it. Submitting never blocks and never fails because of a server: the
    completion tells. The memory of the buffers must stay valid until close.
    """

    def __init__(self, server: Union[str, Sequence[str]], *, workers: int = 4, ttl: Optional[float] = None,
                 deadline: float = 5.0, connect_timeout: float = 1.0, device: str = "auto",
                 auth_file: Optional[str] = None) -> None:
        self._cache = Cache(server, ttl=ttl, deadline=deadline, connect_timeout=connect_timeout, device=device,
                            auth_file=auth_file)
        self._threads = concurrent.futures.ThreadPoolExecutor(workers, "gannet-lmcache")
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()  # guards the completions, and the descriptor's end
        self._completions: Deque[Completion] = collections.deque()
        self._event_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def event_fd(self) -> int:
        """The descriptor that is readable while there are completions to drain."""
        return self._event_fd

    def submit_batch_get(self, keys: Sequence[str], buffers: Sequence[memoryview]) -> int:
        """Reads each value into its buffer. Returns the batch's number."""
        return self._submit(lambda: self._cache.get_into(keys, buffers), _answers)

    def submit_batch_set(self, keys: Sequence[str], buffers: Sequence[memoryview]) -> int:
        """Stores each buffer, which must not change before the completion."""
        return self._submit(lambda: self._cache.put_from(keys, buffers), _all_or_error)

    def submit_batch_exists(self, keys: Sequence[str]) -> int:
        """Finds out which keys exist."""
        return self._submit(lambda: self._cache.exists(keys), _answers)

    def submit_batch_delete(self, keys: Sequence[str]) -> int:
        """Deletes the keys."""
        return self._submit(lambda: self._cache.delete(keys), _answers)

    def drain_completions(self) -> List[Completion]:
        """Returns the batches that ended since the last call. Does not wait."""
        with self._lock:
            if self._event_fd >= 0 and self._completions:
                os.eventfd_read(self._event_fd)
            drained = list(self._completions)
            self._completions.clear()
        return drained

    def close(self) -> None:
        """Waits for the batches that run, drops the others, and ends the connections. Does nothing
        the second time."""
        self._threads.shutdown(cancel_futures=True)
        self._cache.close()
        with self._lock:
            closing, self._event_fd = self._event_fd, -1
        if closing >= 0:
            os.close(closing)

    def _submit(self, batch: Callable[[], Outcome], answer: Callable[[Outcome], Tuple[bool, str, Any]]) -> int:
        number = next(self._numbers)
        self._threads.submit(self._run, number, batch, answer)
        return number

    def _run(self, number: int, batch: Callable[[], Outcome], answer: Callable[[Outcome], Tuple[bool, str, Any]]
             ) -> None:
        completion = (number, *answer(batch()))
        with self._lock:
            self._completions.append(completion)
            os.eventfd_write(self._event_fd, 1)


def _answers(outcome: Outcome) -> Tuple[bool, str, List[bool]]:
    """A key whose server is lost is a miss. LMCache takes no answer of a batch that failed, so it
    failed only if no key has one."""
    return outcome.ok, outcome.error, outcome.each


def _all_or_error(outcome: Outcome) -> Tuple[bool, str, None]:
    """LMCache counts a batch that went well as stored, so one key that was not is enough."""
    return not outcome.error, outcome.error, None
