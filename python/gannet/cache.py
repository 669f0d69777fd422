"""The store as a cache for other programs, which must live on whatever happens to it.

Calls raise nothing. What cannot be done is a miss, and a text says why. Keys have any length. Values
go from and to the memory of the caller, which is registered when it is first used. The connectors
(gannet.lmcache, gannet.sglang, gannet.vllm) are thin layers over this.
"""

import bisect
import logging
import threading
import time
from typing import Any, Callable, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import xxhash

from gannet._capi import ffi
from gannet.arguments import Buffer, split_servers, writable
from gannet.client import Client
from gannet.errors import Unavailable
from gannet.items import ItemInfo
from gannet.memory import Memory, Span

Pieces = Union[Buffer, List[Buffer]]  # one buffer, or the pieces of memory that a value lies in, in order

_log = logging.getLogger("gannet")

KEY_BYTES_MAX = 250
VALUE_BYTES_MAX = 64 << 20
# An attempt to connect may take until its time limit, so after one that failed, calls are misses at
# once for this long.
_CONNECT_AGAIN_SECONDS = 1.0
# A host that is not told of errors has them in its log, but not each.
_LOG_AGAIN_SECONDS = 60.0
# A host that never uses a buffer twice would otherwise have all of them registered.
_AREAS_MAX = 1 << 16


def key_of(name: str) -> bytes:
    """Returns the key of an item that a host calls `name`.

    Up to 250 bytes they are the same. The key of a longer name is the XXH3-128 hash of its beginning,
    "~", and the end of the name, where hosts put what tells one block from the next.
    """
    raw = name.encode()
    if len(raw) <= KEY_BYTES_MAX:
        return raw
    hashed = xxhash.xxh3_128_hexdigest
    end = KEY_BYTES_MAX - 33  # 32 digits and the mark
    return hashed(raw[:-end]).encode() + b"~" + raw[-end:]


def memory_at(address: int, size: int) -> Buffer:
    """Returns the memory there as a buffer. It does not keep the memory alive."""
    return ffi.buffer(ffi.cast("char *", address), size)


class _Area(NamedTuple):
    start: int
    end: int
    memory: Memory
    owners: Tuple[Any, ...]  # they keep the memory of the buffers alive


class Areas:
    """Finds the registered memory of a buffer by its address, and registers it the first time.

    Memory that was seen once must stay valid until this object is gone, as that of the pools is
    from which hosts lend their buffers. Any thread may call it.
    """

    def __init__(self, register: Callable[[Any], Memory]) -> None:
        self._register = register
        self._lock = threading.Lock()
        self._areas: List[_Area] = []  # in the order of their addresses; no two overlap
        self._starts: List[int] = []

    def __len__(self) -> int:
        return len(self._areas)

    def span_of(self, buffer: Buffer) -> Span:
        """Returns the registered memory of the whole buffer, which is contiguous and writable."""
        data = writable(buffer)
        start = int(ffi.cast("uintptr_t", data))
        end = start + len(data)
        with self._lock:
            at = bisect.bisect_right(self._starts, start) - 1
            if at < 0 or end > self._areas[at].end:
                at = self._add(start, end, data)
            area = self._areas[at]
            return area.memory[start - area.start:end - area.start]

    def _add(self, start: int, end: int, owner: Any) -> int:
        """Registers the memory together with the areas that it overlaps. Returns the place in the list."""
        if len(self._areas) >= _AREAS_MAX:
            self._areas.clear()
            self._starts.clear()
        first = bisect.bisect_right(self._starts, start)
        if first > 0 and self._areas[first - 1].end > start:
            first -= 1
        last = bisect.bisect_left(self._starts, end)
        met = self._areas[first:last]
        if met:
            start, end = min(start, met[0].start), max(end, met[-1].end)
        memory = self._register(memory_at(start, end - start))
        owners = tuple(kept for area in met for kept in area.owners) + (owner,)
        # Calls in flight hold the memory of the areas that are replaced, so it is closed after them.
        self._areas[first:last] = [_Area(start, end, memory, owners)]
        self._starts[first:last] = [start]
        return first


class Outcome(NamedTuple):
    """What became of a call for many keys."""

    each: List[bool]  # for each key, in order: whether it was found, stored or deleted
    failed: int  # how many of the others are errors; what remains are misses
    error: str  # the first of them; "" if there was none

    @property
    def ok(self) -> bool:
        """Whether the answers can be used: there are not only errors."""
        return self.failed == 0 or self.failed < len(self.each)


class Cache:
    """Gets, stores, finds and deletes many items a call, in one post a round trip.

    Connects with the first call, and again by itself whenever a server is back. Any thread may call
    it; a thread that waits releases the interpreter. Not usable after os.fork() once it has connected.
    `log_errors`: the host is not told why a call failed, so the log is.
    """

    def __init__(self, servers: Union[str, Iterable[str]], *, ttl: Optional[float] = None, deadline: float = 5.0,
                 connect_timeout: float = 1.0, device: str = "auto", auth_file: Optional[str] = None,
                 log_errors: bool = False) -> None:
        self._servers = split_servers(servers) if isinstance(servers, str) else list(servers)
        self._options = {"deadline": deadline, "connect_timeout": connect_timeout, "device": device,
                         "auth_file": auth_file}
        self._ttl = ttl
        self._log_errors = log_errors
        self._lock = threading.Lock()  # guards all below
        self._wholes: List[Buffer] = []
        self._connected: Optional[Tuple[Client, Areas]] = None
        self._failed: Optional[Exception] = None
        self._failed_at = 0.0
        self._closed = False
        self._is_down = False  # as the log was told
        self._logged_at = float("-inf")

    def close(self) -> None:
        """Ends the connections and forgets the memory. Call it when no thread is in a call."""
        with self._lock:
            closing, self._connected, self._closed = self._connected, None, True
            self._wholes.clear()
        if closing is not None:
            closing[0].close()

    def register(self, whole: Buffer) -> Outcome:
        """Registers the memory of a pool, so that no buffer in it is registered by itself. Without a server,
        the first connection does it."""
        with self._lock:
            self._wholes.append(whole)

        def ask(_: Client, areas: Areas) -> List[Any]:
            areas.span_of(whole)
            return [True]
        return self._ask([""], ask)

    def get_into(self, names: Sequence[str], buffers: Sequence[Pieces]) -> Outcome:
        """Reads each value into its buffer. A value of another size than the buffer is a miss."""
        def ask(client: Client, areas: Areas) -> List[Any]:
            places = _spans(names, buffers, areas)
            infos = client.mget_into(list(zip(map(key_of, names), places)), return_errors=True)
            return [_fills(info, spans) for info, spans in zip(infos, places)]
        return self._ask(names, ask)

    def put_from(self, names: Sequence[str], buffers: Sequence[Pieces]) -> Outcome:
        """Stores each buffer. It must not change before the call returns."""
        return self._ask(names, lambda client, areas: self._put(client, areas, names, buffers))

    def put_missing(self, names: Sequence[str], buffers: Sequence[Pieces]) -> Outcome:
        """Stores the buffers whose items do not exist. For items whose name tells their value."""
        def ask(client: Client, areas: Areas) -> List[Any]:
            each = client.mexists(list(map(key_of, names)), return_errors=True)
            missing = [i for i, found in enumerate(each) if found is not True]
            if not missing or all(isinstance(found, Exception) for found in each):
                return each
            put = self._put(client, areas, [names[i] for i in missing], [buffers[i] for i in missing])
            for i, stored in zip(missing, put):
                each[i] = stored
            return each
        return self._ask(names, ask)

    def exists(self, names: Sequence[str]) -> Outcome:
        """Finds out which items exist. Reads no value."""
        return self._ask(names, lambda client, _: client.mexists(list(map(key_of, names)), return_errors=True))

    def delete(self, names: Sequence[str]) -> Outcome:
        """Deletes the items. An item that did not exist is a miss."""
        return self._ask(names, lambda client, _: client.mdelete(list(map(key_of, names)), return_errors=True))

    def areas(self) -> int:
        """How many areas of memory are registered."""
        with self._lock:
            return 0 if self._connected is None else len(self._connected[1])

    def _put(self, client: Client, areas: Areas, names: Sequence[str], buffers: Sequence[Pieces]) -> List[Any]:
        places = _spans(names, buffers, areas)
        versions = client.mput_from(zip(map(key_of, names), places), ttl=self._ttl, return_errors=True)
        return [version if isinstance(version, Exception) else True for version in versions]

    def _ask(self, names: Sequence[str], question: Callable[[Client, Areas], List[Any]]) -> Outcome:
        n = 0
        try:
            n = len(names)
            results = question(*self._connect()) if n else []
        except Exception as error:  # whatever it is, the host's thread must not end by it
            if n == 0:  # `names` is no sequence
                return Outcome([], 1, f"{type(error).__name__}: {error}")
            # Its traceback would keep this frame, and all memory of the call, until a garbage collection.
            results = [error.with_traceback(None)] * n
        errors = [result for result in results if isinstance(result, Exception)]
        text = f"{type(errors[0]).__name__}: {errors[0]}" if errors else ""
        if n:
            self._tell(any(isinstance(error, Unavailable) for error in errors), text)
        if text and self._log_errors:
            self._log_error(text)
        return Outcome([result is True for result in results], len(errors), text)

    def _connect(self) -> Tuple[Client, Areas]:
        """Returns the client, which reconnects by itself from the first connection on."""
        with self._lock:
            if self._closed:
                raise ValueError("the cache is closed")
            if self._connected is None:
                if self._failed is not None and time.monotonic() - self._failed_at < _CONNECT_AGAIN_SECONDS:
                    raise self._failed
                try:
                    client = Client(self._servers, **self._options)
                    areas = Areas(client.register)
                    for whole in self._wholes:
                        areas.span_of(whole)
                except Exception as error:
                    self._failed, self._failed_at = error.with_traceback(None), time.monotonic()
                    raise self._failed
                self._connected = (client, areas)
            return self._connected

    def _tell(self, is_down: bool, text: str) -> None:
        """Logs when a server is lost and when all answer again, and not each call meanwhile."""
        with self._lock:
            changed, self._is_down = self._is_down != is_down, is_down
        if changed and is_down:
            _log.warning("gannet: its keys are misses until the server is back: %s", text)
        elif changed:
            _log.warning("gannet: the servers answer again")

    def _log_error(self, text: str) -> None:
        """Logs it unless the log has one of the last minute, or knows that a server is lost."""
        with self._lock:
            again = time.monotonic() - self._logged_at > _LOG_AGAIN_SECONDS
            if self._is_down or not again:
                return
            self._logged_at = time.monotonic()
        _log.warning("gannet: %s (further errors are not logged for %d s)", text, _LOG_AGAIN_SECONDS)


def _spans(names: Sequence[str], buffers: Sequence[Pieces], areas: Areas) -> List[List[Span]]:
    if len(names) != len(buffers):
        raise ValueError(f"there are {len(names)} keys and {len(buffers)} buffers")
    return [[areas.span_of(piece) for piece in (pieces if isinstance(pieces, list) else [pieces])]
            for pieces in buffers]


def _fills(info: Union[ItemInfo, Exception, None], spans: List[Span]) -> Union[bool, Exception]:
    if isinstance(info, Exception):
        return info
    return info is not None and info.size == sum(span.size for span in spans)
