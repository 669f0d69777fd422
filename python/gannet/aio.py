"""The client for asyncio.

    async with gannet.aio.Client("10.0.0.1:7471") as client:
        await client.put("greeting", b"hello")
        values = await asyncio.gather(*(client.get(key) for key in keys))

The event loop waits on the client's descriptor. What is begun in one turn of the loop goes out
together. It starts no thread, but for what operators ask: `locks`, `break_lock`, `storage`, `snapshot`,
`connected_clients` and `slow_requests` wait in a thread of their own, with a connection of its own.
"""

import asyncio
import collections
import concurrent.futures
import time
import warnings
import weakref
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Sequence, Tuple, Union

from gannet import memory as registered
from gannet._capi import ffi, lib
from gannet.arguments import Buffer, Key, call, connection, key_bytes, milliseconds, ttl_ms, value_data, writable
from gannet.client import Client as BlockingClient
from gannet.errors import Error, LockLost, error_of, raise_last
from gannet.items import Item, ItemInfo, info_of
from gannet.locks import HeldLock, LockHandle
from gannet.memory import Memory, Place
from gannet.servers import ConnectedClient, SlowRequest, Storage, async_server_info, stats_of

__all__ = ["Client", "Lock"]

_SHORT = 4096
_BATCH = 64
_FREE_MAX = 256


class Lock(LockHandle):
    """A held lock; `async with` unlocks it. As gannet.Lock."""

    async def unlock(self) -> None:
        await self._client.unlock(self)

    async def extend(self, lease: float) -> None:
        await self._client.extend(self, lease)

    async def __aenter__(self) -> "Lock":
        return self

    async def __aexit__(self, error: Any, *_: object) -> None:
        try:
            await self.unlock()
        except LockLost:
            # The body's own error says more.
            if error is None:
                raise


class _Operation:
    """An operation that was begun, or that waits for room. C uses `kept` until it completes.

    Its caller may stop waiting at any time, by a cancellation or at the deadline. Then the future is
    done, and an operation that still waits for room is not begun, unless it is `needed`.
    """

    __slots__ = ("future", "finish", "kept", "start", "end", "needed", "timer")

    def __init__(self, future: "asyncio.Future[Any]", start: Callable[[int], int], finish: Callable[[Any], Any],
                 kept: Any, end: Optional[float], needed: bool) -> None:
        self.future = future
        self.start = start
        self.finish = finish
        self.kept = kept
        self.end = end  # the deadline on the loop's clock; None: the client's, from when it is begun
        self.needed = needed
        self.timer: Optional[asyncio.TimerHandle] = None  # of the wait for room

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    def wait_for_room(self, loop: asyncio.AbstractEventLoop, end: float) -> None:
        self.end = end
        self.timer = loop.call_at(end, self.reach_the_deadline)

    def stop_waiting(self) -> None:
        if self.timer is not None:
            self.timer.cancel()

    def reach_the_deadline(self) -> None:
        self.fail(error_of(lib.GANNET_DEADLINE_EXCEEDED, "too many operations were ahead of it in this client"))


class _Waker:
    """What the event loop calls. It keeps the client alive only while operations are under way, so that
    a client that was dropped is freed."""

    __slots__ = ("_client", "busy")

    def __init__(self, client: "Client") -> None:
        self._client = weakref.ref(client)
        self.busy: Optional["Client"] = None

    def __call__(self) -> None:
        client = self._client()
        if client is not None:
            client._pump()


class _Operator:
    """A thread with a blocking client, which is connected when it is first asked."""

    def __init__(self, arguments: Dict[str, Any]) -> None:
        self._arguments = arguments
        self._client: Optional[BlockingClient] = None  # the thread's
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "gannet-operator")

    def ask(self, question: Callable[[BlockingClient], Any]) -> "concurrent.futures.Future[Any]":
        return self._thread.submit(self._answer, question)

    def _answer(self, question: Callable[[BlockingClient], Any]) -> Any:
        if self._client is None:
            self._client = BlockingClient(**self._arguments)
        return question(self._client)

    def close(self) -> None:
        """Does not wait. Calls that were made before are still answered."""
        try:
            self._thread.submit(self._end)
        except RuntimeError:  # the program ends, and its threads have ended already
            self._end()
        self._thread.shutdown(wait=False)

    def _end(self) -> None:
        if self._client is not None:
            self._client.close()


class Client:
    """A client of one or several servers, for the event loop in which it is first used.

    Takes the arguments of gannet.Client. Connecting blocks the loop, for at most `connect_timeout`.
    A deadline counts from the call, and so includes the wait for room behind `depth` other operations.
    An operation that is cancelled may still happen, unless it waits for room; its buffer is used until
    it is over. A lock that it acquires is given back.
    """

    _c: Any = None  # also of a client whose arguments were wrong

    def __init__(self, servers: Union[str, Iterable[str]] = "127.0.0.1:7471", *, device: str = "auto",
                 deadline: float = 1.0, connect_timeout: float = 3.0,
                 location_cache_bytes: Optional[int] = None, depth: int = 128, reconnect: bool = True,
                 auth_file: Optional[str] = None, near_cache_bytes: int = 0,
                 rails: int = 8) -> None:
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._operator: Optional[_Operator] = None
        servers = [servers] if isinstance(servers, str) else list(servers)
        self._connection = {"servers": servers, "device": device, "deadline": deadline,
                            "connect_timeout": connect_timeout, "auth_file": auth_file}
        names, options, _owned = connection(servers, device, deadline, connect_timeout, location_cache_bytes,
                                            depth, "adaptive", reconnect, auth_file, near_cache_bytes, rails)
        made = ffi.new("gannet_async **")
        status = lib.gannet_async_connect(names, len(names), options, made)
        if status:
            raise_last(status)
        self._c = made[0]
        self._deadline = deadline
        self._done = ffi.new("gannet_completion[]", _BATCH)
        self._operations: Dict[int, _Operation] = {}
        self._waiting: Deque[_Operation] = collections.deque()  # these wait for room
        self._last = 0
        self._pump_is_due = False
        self._waker = _Waker(self)
        self._free: List[Any] = []  # buffers for short values

    def close(self) -> None:
        """Ends the connections. Operations that are under way end with ConnectionError."""
        closing, self._c = self._c, None
        if closing is None:
            return
        has_loop = self._loop is not None and not self._loop.is_closed()
        _end_connections(self._loop if has_loop else None, closing)
        if self._operator is not None:
            self._operator.close()
        for operation in [*self._operations.values(), *self._waiting]:
            operation.stop_waiting()
            if has_loop:
                operation.fail(error_of(lib.GANNET_UNAVAILABLE, "the client was closed"))
        self._operations.clear()
        self._waiting.clear()
        self._waker.busy = None

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __del__(self, warn: Any = warnings.warn) -> None:
        if self._c is None:
            return
        loop = self._loop
        if loop is None or not loop.is_running() or loop is asyncio._get_running_loop():
            self.close()
        else:  # the collector runs in another thread than the loop, and only that one may touch both
            closing, self._c = self._c, None
            loop.call_soon_threadsafe(_end_connections, loop, closing)
            if self._operator is not None:
                self._operator.close()
        warn(f"{self!r} was not closed", ResourceWarning, source=self)

    # --- reading

    async def get(self, key: Key, default: Any = None) -> Any:
        """Returns the value, or `default` if there is no such key."""
        item = await self._gets(key)
        return default if item is None else item.value

    async def gets(self, key: Key) -> Optional[Item]:
        """Returns the value with its version, flags and time to live, or None."""
        return await self._gets(key)

    async def mget(self, keys: Iterable[Key]) -> List[Optional[bytes]]:
        """Returns a value, or None, for each key, in order."""
        return list(await asyncio.gather(*(self.get(key) for key in keys)))

    async def get_into(self, key: Key, target: Union[Buffer, Place]) -> Optional[ItemInfo]:
        """Reads the value into a buffer or into registered memory, as far as there is room, as
        gannet.Client.get_into."""
        raw = key_bytes(key)
        if registered.is_place(target):
            spans, n = registered.spans_of(target)
            return await self._begin(lambda i: lib.gannet_async_get_into_memory(self._c, raw, len(raw), spans, n, i),
                                     _info_or_none, (spans, target))
        data = writable(target)
        return await self._begin(lambda i: lib.gannet_async_get(self._c, raw, len(raw), data, len(data), i),
                                 _info_or_none, data)

    async def mget_into(self, targets: Sequence[Tuple[Key, Place]], *, return_errors: bool = False) -> List[Any]:
        """Reads the value of each key into its registered memory, all at once. Errors as in mexists."""
        return await _all((self.get_into(key, place) for key, place in targets), return_errors)

    async def get_and_touch(self, key: Key, ttl: Optional[float] = None) -> Optional[Item]:
        """touch, and then get."""
        raw = key_bytes(key)
        return await self._read(lambda buffer, size: lambda i: lib.gannet_async_get_and_touch(
            self._c, raw, len(raw), ttl_ms(ttl), buffer, size, i))

    async def exists(self, key: Key) -> bool:
        """Returns whether there is such a key, without reading its value."""
        raw = key_bytes(key)
        return await self._begin(lambda i: lib.gannet_async_exists(self._c, raw, len(raw), i), _was_there, None)

    async def mexists(self, keys: Iterable[Key], *, return_errors: bool = False) -> List[Any]:
        """Returns for each key, in order, whether it exists. All go out together. An error is raised, or
        with `return_errors` it is that key's result."""
        return await _all((self.exists(key) for key in keys), return_errors)

    async def get_if_changed(self, key: Key, version: int) -> Tuple[bool, Optional[Item]]:
        """As gannet.Client.get_if_changed."""
        raw = key_bytes(key)
        item = await self._read(lambda buffer, size: lambda i: lib.gannet_async_get_if_changed(
            self._c, raw, len(raw), version, buffer, size, i), version)
        unchanged = item is not None and item.version == version
        return (not unchanged, None if unchanged else item)

    # --- writing. The options are those of gannet.Client, without deadline.

    async def put(self, key: Key, value: Union[str, Buffer], **options: Any) -> int:
        """Stores the value, and returns its version."""
        return await self._write(lib.gannet_async_put, key, value, options)

    async def put_from(self, key: Key, place: Place, **options: Any) -> int:
        """put of a value that lies in registered memory, from where the server reads it. The memory
        must not change before the end."""
        raw, of_call = key_bytes(key), call(**options)
        spans, n = registered.spans_of(place)
        return await self._begin(
            lambda i: lib.gannet_async_put_from_memory(self._c, raw, len(raw), spans, n, of_call, i),
            lambda done: done.info.version, (spans, place, options))

    async def mput_from(self, items: Iterable[Tuple[Key, Place]], *, return_errors: bool = False, **options: Any
                        ) -> List[Any]:
        """put_from for all pairs of a key and its registered memory. Returns their versions. Errors as in
        mexists."""
        return await _all((self.put_from(key, place, **options) for key, place in items), return_errors)

    async def add(self, key: Key, value: Union[str, Buffer], **options: Any) -> int:
        """put with if_absent."""
        return await self.put(key, value, if_absent=True, **options)

    async def replace(self, key: Key, value: Union[str, Buffer], **options: Any) -> int:
        """put with if_present."""
        return await self.put(key, value, if_present=True, **options)

    async def mput(self, items: Dict[Key, Any], **options: Any) -> List[int]:
        """Stores all at once, and returns their versions."""
        return list(await asyncio.gather(*(self.put(key, value, **options) for key, value in items.items())))

    async def append(self, key: Key, piece: Union[str, Buffer], **options: Any) -> int:
        """Adds a piece to the end of the value, and returns the new version."""
        return await self._write(lib.gannet_async_append, key, piece, options)

    async def prepend(self, key: Key, piece: Union[str, Buffer], **options: Any) -> int:
        """Adds a piece to the beginning of the value, and returns the new version."""
        return await self._write(lib.gannet_async_prepend, key, piece, options)

    async def delete(self, key: Key, **options: Any) -> bool:
        """Returns False if there was no such key."""
        raw, of_call = key_bytes(key), call(**options)
        return await self._begin(lambda i: lib.gannet_async_delete(self._c, raw, len(raw), of_call, i),
                                 _was_there, options)

    async def mdelete(self, keys: Iterable[Key], *, return_errors: bool = False) -> List[Any]:
        """Deletes all keys. Returns for each, in order, whether there was such a key. Errors as in
        mexists."""
        return await _all((self.delete(key) for key in keys), return_errors)

    async def incr(self, key: Key, delta: int = 1, **options: Any) -> int:
        """Adds to a value that is a decimal number, and returns the sum."""
        raw, of_call = key_bytes(key), call(**options)
        return await self._begin(lambda i: lib.gannet_async_incr(self._c, raw, len(raw), delta, of_call, i),
                                 lambda done: done.number, options)

    async def decr(self, key: Key, delta: int = 1, **options: Any) -> int:
        """incr with -delta."""
        return await self.incr(key, -delta, **options)

    async def touch(self, key: Key, ttl: Optional[float] = None, **options: Any) -> bool:
        """Gives the item a new time to live. Returns False if there is no such key."""
        raw, of_call = key_bytes(key), call(**options)
        return await self._begin(lambda i: lib.gannet_async_touch(self._c, raw, len(raw), ttl_ms(ttl), of_call, i),
                                 _was_there, options)

    # --- locks

    async def try_lock(self, key: Key, *, lease: Optional[float] = None) -> Optional[Lock]:
        """Tries once. Returns None if another client holds the lock."""
        return await self._try_lock(key, lease)

    async def lock(self, key: Key, *, timeout: Optional[float] = None, lease: Optional[float] = None) -> Lock:
        """Waits for the lock, for at most `timeout` seconds (default: the client's deadline), then
        DeadlineExceeded."""
        return await self._lock(key, lease, self._end_of(timeout))

    async def lock_and_get(self, key: Key, *, timeout: Optional[float] = None, lease: Optional[float] = None
                           ) -> Tuple[Lock, Optional[Item]]:
        """Locks as lock does, and then reads, all within `timeout`."""
        end = self._end_of(timeout)
        lock = await self._lock(key, lease, end)
        try:
            return lock, await self._gets(key, end)
        except BaseException:
            self._give_back(lock)
            raise

    async def unlock(self, lock: Lock) -> None:
        """Raises LockLost if the lock was lost before."""
        await self._unlock(lock)

    async def extend(self, lock: Lock, lease: float) -> None:
        """Gives the lock a lease that counts from now."""
        await self._begin(lambda i: lib.gannet_async_extend(self._c, lock.c_lock, ttl_ms(lease), i), _nothing, lock)

    # --- registered memory, as that of gannet.Client. It blocks the loop for a moment.

    def allocate(self, size: int) -> Memory:
        """Makes registered memory."""
        return registered.allocate(lib.gannet_async_allocate, self._open(), size)

    def register(self, buffer: Buffer, *, remote_read: bool = True) -> Memory:
        """Registers memory of the caller's own. put_from needs `remote_read`, get_into does not."""
        return registered.register(lib.gannet_async_register, self._open(), buffer, remote_read)

    # --- servers

    async def ping(self, server: int = 0) -> None:
        """Makes a round trip through the CPU of a server."""
        await self._begin(lambda i: lib.gannet_async_ping(self._c, server, i), _nothing, None)

    async def stats(self, server: int = 0) -> Dict[str, int]:
        """What a server counts."""
        stats = ffi.new("gannet_stats *")
        stats.size = ffi.sizeof("gannet_stats")
        return await self._begin(lambda i: lib.gannet_async_stats(self._c, server, stats, i),
                                 lambda done: stats_of(stats), stats)

    async def flush(self, server: int = 0) -> int:
        """Removes all items of a server, and returns their number."""
        return await self._begin(lambda i: lib.gannet_async_flush(self._c, server, i),
                                 lambda done: done.number, None)

    def servers(self) -> List[Dict[str, Any]]:
        """Describes the connection to each server."""
        opened = self._open()
        return [async_server_info(opened, i)
                for i in range(lib.gannet_async_server_count(opened))]

    # --- what operators ask, in a thread

    async def locks(self, server: int = 0, deadline: Optional[float] = None) -> List[HeldLock]:
        """All locks that anybody holds at a server."""
        return await self._ask(lambda client, left: client.locks(server, left), deadline)

    async def break_lock(self, key: Key, deadline: Optional[float] = None) -> bool:
        """Breaks the key's lock, whoever holds it. Returns False if nobody did."""
        return await self._ask(lambda client, left: client.break_lock(key, left), deadline)

    async def storage(self, server: int = 0, deadline: Optional[float] = None) -> Storage:
        """Where a server keeps its items, and what a power cut would take."""
        return await self._ask(lambda client, left: client.storage(server, left), deadline)

    async def snapshot(self, server: int = 0, deadline: float = 3600.0) -> Storage:
        """As gannet.Client.snapshot."""
        return await self._ask(lambda client, left: client.snapshot(server, left), deadline)

    async def connected_clients(self, server: int = 0, deadline: Optional[float] = None) -> List[ConnectedClient]:
        """The connections of all clients of a server."""
        return await self._ask(lambda client, left: client.connected_clients(server, left), deadline)

    async def slow_requests(self, server: int = 0, deadline: Optional[float] = None) -> List[SlowRequest]:
        """The last requests that took a server long (its --slowlog_us), the newest first."""
        return await self._ask(lambda client, left: client.slow_requests(server, left), deadline)

    def set_deadline(self, seconds: float) -> None:
        """Sets the deadline of every operation that is begun from now on."""
        self._deadline = seconds
        lib.gannet_async_set_deadline(self._open(), milliseconds(seconds))

    # --- what these share

    def _open(self) -> Any:
        if self._c is None:
            raise ValueError("the client is closed")
        return self._c

    def _end_of(self, timeout: Optional[float]) -> float:
        """Returns the end, on the loop's clock, of a call that takes several operations."""
        return asyncio.get_running_loop().time() + (self._deadline if timeout is None else timeout)

    async def _gets(self, key: Key, end: Optional[float] = None) -> Optional[Item]:
        raw = key_bytes(key)
        return await self._read(lambda buffer, size: lambda i: lib.gannet_async_get(
            self._c, raw, len(raw), buffer, size, i), end=end)

    async def _try_lock(self, key: Key, lease: Optional[float], end: Optional[float] = None) -> Optional[Lock]:
        raw, of_call = key_bytes(key), call(lease=lease)

        def finish(done: Any) -> Optional[Lock]:
            if done.status:
                return None
            c_lock = ffi.new("gannet_lock *")
            lib.gannet_async_make_lock(self._c, raw, len(raw), done.lock_word, c_lock)
            return Lock(self, c_lock)

        taking = self._begin(lambda i: lib.gannet_async_try_lock(self._c, raw, len(raw), of_call, i), finish, None, end)
        try:
            return await taking
        except asyncio.CancelledError:
            if not taking.cancelled() and taking.exception() is None and taking.result() is not None:
                self._give_back(taking.result())  # the cancellation came between the answer and this caller
            raise

    async def _lock(self, key: Key, lease: Optional[float], end: float) -> Lock:
        loop = asyncio.get_running_loop()
        pause = 0.0005
        while True:
            lock = await self._try_lock(key, lease, end)
            if lock is not None:
                return lock
            if loop.time() + pause > end:
                raise error_of(lib.GANNET_DEADLINE_EXCEEDED, "another client holds the lock")
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.02)

    def _unlock(self, lock: Lock) -> "asyncio.Future[Any]":
        return self._begin(lambda i: lib.gannet_async_unlock(self._c, lock.c_lock, i), _nothing, lock, needed=True)

    def _give_back(self, lock: Lock) -> None:
        """Unlocks for a caller who was cancelled, and so never hears of the lock."""
        if self._c is not None:
            self._unlock(lock).add_done_callback(_ignored)

    async def _ask(self, question: Callable[[BlockingClient, float], Any], deadline: Optional[float]) -> Any:
        """Asks in the operators' thread. The time until it gets to the question counts."""
        self._open()
        if self._operator is None:
            self._operator = _Operator(self._connection)
        seconds = self._deadline if deadline is None else deadline
        end = time.monotonic() + seconds
        asked = self._operator.ask(lambda client: question(client, max(0.0, end - time.monotonic())))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(asked), seconds)
        except asyncio.TimeoutError as error:
            if isinstance(error, Error):  # the client's own
                raise
            raise error_of(lib.GANNET_DEADLINE_EXCEEDED, "the operators' thread had no answer in time") from None

    async def _read(self, start: Callable[[Any, int], Callable[[int], int]], known: int = 0,
                    end: Optional[float] = None) -> Optional[Item]:
        """Reads into a buffer for short values, and into a longer one if the value is longer. An item of
        version `known` comes without its value."""
        begun = time.monotonic()
        size = _SHORT
        while True:
            short = size == _SHORT
            buffer = self._free.pop() if short and self._free else ffi.new("char[]", size)

            def finish(done: Any, buffer: Any = buffer, size: int = size, short: bool = short) -> Any:
                item = None
                if done.status == 0 and known != 0 and done.info.version == known:
                    item = Item(b"", info_of(done.info))
                elif done.status == 0 and done.info.value_size <= size:
                    item = Item(ffi.buffer(buffer, done.info.value_size)[:], info_of(done.info))
                if short and len(self._free) < _FREE_MAX:
                    self._free.append(buffer)
                return item, done.info.value_size if done.status == 0 else 0

            item, value_size = await self._begin(start(buffer, size), finish, buffer, end)
            if item is not None or value_size == 0:
                return item
            size = value_size
            if end is None:  # one deadline for both
                end = self._end_of(begun + self._deadline - time.monotonic())

    async def _write(self, function: Any, key: Key, value: Union[str, Buffer], options: Dict[str, Any]) -> int:
        raw, of_call = key_bytes(key), call(**options)
        data, size = value_data(value)
        if type(data) is bytes:
            data = ffi.from_buffer(data)  # C uses it after this call, so it must not be a temporary
        return await self._begin(lambda i: function(self._c, raw, len(raw), data, size, of_call, i),
                                 lambda done: done.info.version, (data, options))

    def _begin(self, start: Callable[[int], int], finish: Callable[[Any], Any], kept: Any,
               end: Optional[float] = None, needed: bool = False) -> "asyncio.Future[Any]":
        """Begins an operation with start(number), whose result is finish(gannet_completion)."""
        self._open()
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(lib.gannet_async_fd(self._c), self._waker)
        operation = _Operation(self._loop.create_future(), start, finish, kept, end, needed)
        if self._waiting or not self._start(operation):
            operation.wait_for_room(self._loop, self._end_of(None) if end is None else end)
            self._waiting.append(operation)
        if not self._pump_is_due:
            self._pump_is_due = True
            self._waker.busy = self
            self._loop.call_soon(self._waker)
        return operation.future

    def _start(self, operation: _Operation) -> bool:
        """Returns False if there is no room for it now."""
        self._last += 1
        try:
            status = operation.start(self._last) if operation.end is None else self._start_late(operation)
            if status == lib.GANNET_RESOURCE_EXHAUSTED:
                return False
            if status:
                raise_last(status)
            self._operations[self._last] = operation
        except Exception as error:  # as the operation's result, like all its other errors
            operation.fail(error)
        return True

    def _start_late(self, operation: _Operation) -> int:
        """Starts it with what is left of its time."""
        lib.gannet_async_set_deadline(self._c, milliseconds(max(0.0, operation.end - self._loop.time())))
        try:
            return operation.start(self._last)
        finally:
            lib.gannet_async_set_deadline(self._c, milliseconds(self._deadline))

    def _pump(self) -> None:
        """Does what there is to do, then arms the descriptor. Runs when it is readable, and once
        after operations were begun, so the descriptor is armed whenever the loop sleeps."""
        self._pump_is_due = False
        if self._c is None:
            return
        self._poll()
        while lib.gannet_async_arm(self._c):
            self._poll()
        if not self._operations and not self._waiting and not self._pump_is_due:
            self._waker.busy = None

    def _poll(self) -> None:
        n = lib.gannet_async_poll(self._c, self._done, _BATCH)
        for i in range(n):
            done = self._done[i]
            self._end(self._operations.pop(done.user_data), done)
        if self._waiting:
            self._begin_those_that_wait(self._loop.time())

    def _begin_those_that_wait(self, now: float) -> None:
        while self._waiting:
            operation = self._waiting[0]
            if operation.end <= now:
                operation.reach_the_deadline()
            is_wanted = operation.needed or not operation.future.done()
            if is_wanted and not self._start(operation):
                break
            operation.stop_waiting()
            self._waiting.popleft()

    def _end(self, operation: _Operation, done: Any) -> None:
        """Hands the result of an operation to the caller who waits for it."""
        if done.status not in _ANSWERS and not (done.status == lib.GANNET_NOT_FOUND and done.op in _MAY_MISS):
            operation.fail(error_of(done.status))
            return
        try:
            result = operation.finish(done)  # even if nobody waits: it gives back a buffer
        except Exception as error:
            operation.fail(error)
            return
        if not operation.future.done():
            operation.future.set_result(result)
        elif isinstance(result, Lock):  # of a caller who was cancelled
            self._give_back(result)


_ANSWERS: Tuple[int, ...] = (lib.GANNET_OK, lib.GANNET_LOCKED)
_MAY_MISS: Tuple[int, ...] = (lib.GANNET_OP_GET, lib.GANNET_OP_DELETE, lib.GANNET_OP_TOUCH,
                              lib.GANNET_OP_GET_AND_TOUCH, lib.GANNET_OP_GET_INTO_MEMORY,
                              lib.GANNET_OP_EXISTS, lib.GANNET_OP_GET_IF_CHANGED)


async def _all(operations: Iterable[Any], return_errors: bool) -> List[Any]:
    return list(await asyncio.gather(*operations, return_exceptions=return_errors))


def _end_connections(loop: Optional[asyncio.AbstractEventLoop], c: Any) -> None:
    if loop is not None:
        loop.remove_reader(lib.gannet_async_fd(c))
    lib.gannet_async_close(c)


def _ignored(future: "asyncio.Future[Any]") -> None:
    """Says that nobody asks for the result, which may be an error."""
    if not future.cancelled():
        future.exception()


def _was_there(done: Any) -> bool:
    return done.status == lib.GANNET_OK


def _nothing(done: Any) -> None:
    return None


def _info_or_none(done: Any) -> Optional[ItemInfo]:
    return info_of(done.info) if done.status == lib.GANNET_OK else None
