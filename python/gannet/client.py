"""The synchronous client."""

import threading
import warnings
from typing import Any, Dict, Iterable, List, Mapping, NoReturn, Optional, Sequence, Tuple, TypeVar, Union

from gannet import memory as registered
from gannet._capi import ffi, lib
from gannet.arguments import Buffer, Key, NULL, call, connection, key_bytes, ttl_ms, value_data, writable
from gannet.errors import LockLost, SnapshotFailed, answers_of_keys, error_of, raise_last
from gannet.items import Item, ItemInfo, info_of
from gannet.locks import HeldLock, Lock
from gannet.memory import Memory, Place
from gannet.servers import (ConnectedClient, SlowRequest, Storage, client_server_info, connected_clients_of, list_of,
                            slow_requests_of, stats_of, storage_of)

T = TypeVar("T")

# Values up to this are read into memory that a thread keeps, and copied once.
_SHORT = 4096
_NOT_FOUND = lib.GANNET_NOT_FOUND
_get_into = lib.gannet_client_get_into
_buffer = ffi.buffer


class _OfThread(threading.local):
    """Outputs of calls. A thread is in one call at a time."""

    def __init__(self) -> None:
        self.short = ffi.new("char[]", _SHORT)
        self.info = ffi.new("gannet_item_info *")
        self.version = ffi.new("uint64_t *")
        self.number = ffi.new("int64_t *")


class Client:
    """A client of one or several servers: "HOST:PORT", or a list of these. "cluster:HOST:PORT,HOST:PORT"
    is a group, one server whose primary is found by asking the members that are listed.

    Any thread may call it, and other threads run while one waits. For throughput give each thread
    its own. Close it, or leave its `with`, when no thread is in a call. Not usable after os.fork().

    `deadline` (seconds) is that of every call that does not say otherwise.
    """

    _c: Any = None  # also of a client whose arguments were wrong

    def __init__(self, servers: Union[str, Iterable[str]] = "127.0.0.1:7471", *, device: str = "auto",
                 deadline: float = 1.0, connect_timeout: float = 3.0,
                 location_cache_bytes: Optional[int] = None, depth: int = 0, wait: str = "adaptive",
                 reconnect: bool = True, auth_file: Optional[str] = None, near_cache_bytes: int = 0,
                 rails: int = 8) -> None:
        names, options, _owned = connection(servers, device, deadline, connect_timeout, location_cache_bytes,
                                            depth, wait, reconnect, auth_file, near_cache_bytes, rails)
        made = ffi.new("gannet_client **")
        status = lib.gannet_client_connect(names, len(names), options, made)
        if status:
            raise_last(status)
        self._c = made[0]
        self._of_thread = _OfThread()

    def close(self) -> None:
        """Ends the connections. Does nothing the second time."""
        closing, self._c = self._c, None
        if closing is not None:
            lib.gannet_client_close(closing)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, warn: Any = warnings.warn) -> None:
        if self._c is not None:
            self.close()
            warn(f"{self!r} was not closed", ResourceWarning, source=self)

    # --- reading

    def get(self, key: Key, default: Optional[T] = None, deadline: Optional[float] = None
            ) -> Union[bytes, Optional[T]]:
        """Returns the value, or `default` if there is no such key."""
        if type(key) is str:
            key = key.encode()
        elif type(key) is not bytes:
            key = key_bytes(key)
        mine = self._of_thread
        info = mine.info
        short = mine.short
        status = _get_into(self._c or self._fail(), key, len(key), short, _SHORT,
                           NULL if deadline is None else call(deadline), info)
        if status == 0:
            size = info.value_size
            if size <= _SHORT:
                return _buffer(short, size)[:]
            item = self._get_whole(key, deadline)
            return default if item is None else item.value
        if status == _NOT_FOUND:
            return default
        raise_last(status)

    def gets(self, key: Key, deadline: Optional[float] = None) -> Optional[Item]:
        """Returns the value with its version, flags and time to live, or None."""
        return self._get_whole(key_bytes(key), deadline)

    def get_into(self, key: Key, target: Union[Buffer, Place], deadline: Optional[float] = None
                 ) -> Optional[ItemInfo]:
        """Reads the value into a buffer that may be written, without a copy in between, as far as
        there is room. Returns its ItemInfo, whose `size` is that of the whole value, or None if there
        is no such key. `target` may also be registered memory, where long values land without the
        CPU.
        """
        raw = key_bytes(key)
        info = self._of_thread.info
        if registered.is_place(target):
            spans, n = registered.spans_of(target)
            status = lib.gannet_client_get_into_memory(self._open(), raw, len(raw), spans, n, call(deadline), info)
        else:
            data = writable(target)
            status = _get_into(self._open(), raw, len(raw), data, len(data), call(deadline), info)
        if status == _NOT_FOUND:
            return None
        if status:
            raise_last(status)
        return info_of(info)

    def mget(self, keys: Sequence[Key], deadline: Optional[float] = None) -> List[Optional[bytes]]:
        """Returns a value, or None, for each key, in order. Asks for all of them at once."""
        raw = [key_bytes(key) for key in keys]
        results = ffi.new("gannet_get_result[]", len(raw))
        asked = ffi.new("gannet_key[]", len(raw))
        kept = [ffi.from_buffer(key) for key in raw]
        for at, data, key in zip(asked, kept, raw):
            at.data, at.size = data, len(key)
        status = lib.gannet_client_multi_get(self._open(), asked, len(raw), call(deadline), results)
        values = []
        for result in results:
            data = result.value.data
            values.append(_buffer(data, result.value.size)[:] if data else None)
            lib.gannet_free(data)
        if status:
            raise_last(status)
        return values

    def mget_into(self, targets: Sequence[Tuple[Key, Place]], deadline: Optional[float] = None, *,
                  return_errors: bool = False) -> List[Any]:
        """Reads the value of each key into its registered memory, all at once. Returns an ItemInfo, or
        None, for each. Errors as in mexists."""
        results = ffi.new("gannet_info_result[]", len(targets))
        asked = ffi.new("gannet_get_target[]", len(targets))
        kept = []
        for at, (key, place) in zip(asked, targets):
            raw = ffi.from_buffer(key_bytes(key))
            spans, n = registered.spans_of(place)
            kept.append((raw, spans))
            at.key.data, at.key.size, at.spans, at.span_count = raw, len(raw), spans, n
        status = lib.gannet_client_multi_get_into_memory(self._open(), asked, len(targets), call(deadline), results)
        return answers_of_keys(status, return_errors, [result.status for result in results],
                               [info_of(result.info) for result in results], None)

    def exists(self, key: Key, deadline: Optional[float] = None) -> bool:
        """Returns whether there is such a key, without reading its value."""
        raw = key_bytes(key)
        return self._was_there(lib.gannet_client_exists(self._open(), raw, len(raw), call(deadline)))

    def mexists(self, keys: Sequence[Key], *, return_errors: bool = False, deadline: Optional[float] = None
                ) -> List[Any]:
        """Returns for each key, in order, whether it exists. Asks for all of them at once. An error of a
        key is raised after all were tried, or with `return_errors` it is that key's result."""
        return self._each_was_there(lib.gannet_client_multi_exists, keys, return_errors, deadline)

    def get_if_changed(self, key: Key, version: int, deadline: Optional[float] = None) -> Tuple[bool, Optional[Item]]:
        """Returns (False, None) if the item still has `version`, which an earlier call told. Its value
        is not read then. Otherwise returns (True, item), or (True, None) if there is no such key."""
        raw = key_bytes(key)
        value = ffi.new("gannet_value *")
        item = self._item(lib.gannet_client_get_if_changed(self._open(), raw, len(raw), version, call(deadline),
                                                           value), value)
        return (item is not None or value.info.version == 0, item)

    # --- writing

    def put(self, key: Key, value: Union[str, Buffer], *, ttl: Optional[float] = None, flags: int = 0,
            if_absent: bool = False, if_present: bool = False, if_version: Optional[int] = None,
            lock: Optional[Lock] = None, deadline: Optional[float] = None) -> int:
        """Stores the value, and returns its version. `ttl` None or 0: for ever.

        if_absent: AlreadyExists if there is an item. if_present: NotFound if there is none.
        if_version: FailedPrecondition if the item has another version (0: if there is one). lock:
        LockLost if it was lost; needs if_version.
        """
        raw = key_bytes(key)
        data, size = value_data(value)
        version = self._of_thread.version
        status = lib.gannet_client_put(
            self._open(), raw, len(raw), data, size,
            call(deadline, ttl=ttl, flags=flags, if_absent=if_absent, if_present=if_present,
                 if_version=if_version, lock=lock), version)
        if status:
            raise_last(status)
        return version[0]

    def add(self, key: Key, value: Union[str, Buffer], **options: Any) -> int:
        """put with if_absent."""
        return self.put(key, value, if_absent=True, **options)

    def replace(self, key: Key, value: Union[str, Buffer], **options: Any) -> int:
        """put with if_present."""
        return self.put(key, value, if_present=True, **options)

    def put_from(self, key: Key, place: Place, *, ttl: Optional[float] = None, flags: int = 0,
                 if_absent: bool = False, if_present: bool = False, if_version: Optional[int] = None,
                 lock: Optional[Lock] = None, deadline: Optional[float] = None) -> int:
        """put of a value that lies in registered memory, from where the server reads it."""
        raw = key_bytes(key)
        spans, n = registered.spans_of(place)
        version = self._of_thread.version
        status = lib.gannet_client_put_from_memory(
            self._open(), raw, len(raw), spans, n,
            call(deadline, ttl=ttl, flags=flags, if_absent=if_absent, if_present=if_present,
                 if_version=if_version, lock=lock), version)
        if status:
            raise_last(status)
        return version[0]

    def mput(self, items: Union[Mapping[Key, Any], Iterable[Tuple[Key, Any]]], *,
             ttl: Optional[float] = None, flags: int = 0, deadline: Optional[float] = None) -> List[int]:
        """Stores all at once, and returns their versions. Raises the first error after all were
        tried."""
        pairs = list(items.items() if isinstance(items, Mapping) else items)
        of_each = call(ttl=ttl, flags=flags)
        puts = ffi.new("gannet_put_item[]", len(pairs))
        results = ffi.new("gannet_put_result[]", len(pairs))
        kept = []
        for at, (key, value) in zip(puts, pairs):
            raw = ffi.from_buffer(key_bytes(key))
            data, size = value_data(value)
            if type(data) is bytes:
                data = ffi.from_buffer(data)
            kept.append((raw, data))
            at.key.data, at.key.size, at.value.data, at.value.size, at.call = raw, len(raw), data, size, of_each
        status = lib.gannet_client_multi_put(self._open(), puts, len(pairs), call(deadline), results)
        if status:
            raise_last(status)
        return [result.version for result in results]

    def mput_from(self, items: Iterable[Tuple[Key, Place]], *, ttl: Optional[float] = None, flags: int = 0,
                  if_absent: bool = False, return_errors: bool = False, deadline: Optional[float] = None
                  ) -> List[Any]:
        """put_from for all pairs of a key and its registered memory, at once. Returns their versions.
        Errors as in mexists."""
        pairs = list(items)
        of_each = call(ttl=ttl, flags=flags, if_absent=if_absent)
        puts = ffi.new("gannet_put_source[]", len(pairs))
        results = ffi.new("gannet_put_result[]", len(pairs))
        kept = []
        for at, (key, place) in zip(puts, pairs):
            raw = ffi.from_buffer(key_bytes(key))
            spans, n = registered.spans_of(place)
            kept.append((raw, spans))
            at.key.data, at.key.size, at.spans, at.span_count, at.call = raw, len(raw), spans, n, of_each
        status = lib.gannet_client_multi_put_from_memory(self._open(), puts, len(pairs), call(deadline), results)
        return answers_of_keys(status, return_errors, [result.status for result in results],
                               [result.version for result in results], error_of(_NOT_FOUND))

    def delete(self, key: Key, *, if_version: Optional[int] = None, lock: Optional[Lock] = None,
               deadline: Optional[float] = None) -> bool:
        """Returns False if there was no such key."""
        raw = key_bytes(key)
        return self._was_there(lib.gannet_client_delete(
            self._open(), raw, len(raw), call(deadline, if_version=if_version, lock=lock)))

    def mdelete(self, keys: Sequence[Key], *, return_errors: bool = False, deadline: Optional[float] = None
                ) -> List[Any]:
        """Deletes all keys at once. Returns for each, in order, whether there was such a key. Errors as in
        mexists."""
        return self._each_was_there(lib.gannet_client_multi_delete, keys, return_errors, deadline)

    def append(self, key: Key, piece: Union[str, Buffer], **options: Any) -> int:
        """Adds a piece to the end of the value, and returns the new version. An absent key gets the
        piece as its value, unless if_present. Takes the options of put, except if_absent."""
        return self._change(lib.gannet_client_append, key, piece, options)

    def prepend(self, key: Key, piece: Union[str, Buffer], **options: Any) -> int:
        """Adds a piece to the beginning of the value, as append does to the end."""
        return self._change(lib.gannet_client_prepend, key, piece, options)

    def incr(self, key: Key, delta: int = 1, *, initial: int = 0, deadline: Optional[float] = None,
             **options: Any) -> int:
        """Adds to a value that is a decimal number, and returns the sum. An absent key counts from
        `initial`. Takes the options of append."""
        raw = key_bytes(key)
        number = self._of_thread.number
        status = lib.gannet_client_incr(self._open(), raw, len(raw), delta,
                                        call(deadline, initial=initial, **options), number)
        if status:
            raise_last(status)
        return number[0]

    def decr(self, key: Key, delta: int = 1, **options: Any) -> int:
        """incr with -delta."""
        return self.incr(key, -delta, **options)

    def touch(self, key: Key, ttl: Optional[float] = None, *, if_version: Optional[int] = None,
              lock: Optional[Lock] = None, deadline: Optional[float] = None) -> bool:
        """Gives the item a new time to live. Returns False if there is no such key."""
        raw = key_bytes(key)
        return self._was_there(lib.gannet_client_touch(
            self._open(), raw, len(raw), ttl_ms(ttl), call(deadline, if_version=if_version, lock=lock)))

    def get_and_touch(self, key: Key, ttl: Optional[float] = None, deadline: Optional[float] = None
                      ) -> Optional[Item]:
        """touch, and then get."""
        raw = key_bytes(key)
        value = ffi.new("gannet_value *")
        return self._item(lib.gannet_client_get_and_touch(self._open(), raw, len(raw), ttl_ms(ttl), call(deadline),
                                                         value), value)

    def flush(self, deadline: float = 60.0) -> int:
        """Removes all items of all servers, and returns their number."""
        removed = self._of_thread.version
        status = lib.gannet_client_flush(self._open(), call(deadline), removed)
        if status:
            raise_last(status)
        return removed[0]

    # --- locks

    def lock(self, key: Key, *, timeout: Optional[float] = None, lease: Optional[float] = None) -> Lock:
        """Waits for the lock, for at most `timeout` seconds (default: the client's deadline), then
        DeadlineExceeded. With `lease` the server breaks it after so many seconds. Locks are advisory:
        a plain put ignores them."""
        raw = key_bytes(key)
        c_lock = ffi.new("gannet_lock *")
        status = lib.gannet_client_lock(self._open(), raw, len(raw), call(timeout, lease=lease), c_lock)
        if status:
            raise_last(status)
        return Lock(self, c_lock)

    def try_lock(self, key: Key, *, lease: Optional[float] = None, deadline: Optional[float] = None
                 ) -> Optional[Lock]:
        """Tries once. Returns None if another client holds the lock."""
        raw = key_bytes(key)
        c_lock = ffi.new("gannet_lock *")
        status = lib.gannet_client_try_lock(self._open(), raw, len(raw), call(deadline, lease=lease), c_lock)
        if status == lib.GANNET_LOCKED:
            return None
        if status:
            raise_last(status)
        return Lock(self, c_lock)

    def lock_and_get(self, key: Key, *, timeout: Optional[float] = None, lease: Optional[float] = None
                     ) -> Tuple[Lock, Optional[Item]]:
        """Locks and reads in one round trip."""
        raw = key_bytes(key)
        c_lock = ffi.new("gannet_lock *")
        value = ffi.new("gannet_value *")
        status = lib.gannet_client_lock_and_get(self._open(), raw, len(raw), call(timeout, lease=lease), c_lock,
                                                value)
        item = self._item(status, value)
        return Lock(self, c_lock), item

    def unlock(self, lock: Lock, deadline: Optional[float] = None) -> None:
        """Raises LockLost if the lock was lost before."""
        status = lib.gannet_client_unlock(self._open(), lock.c_lock, call(deadline))
        if status:
            raise_last(status)

    def extend(self, lock: Lock, lease: float, deadline: Optional[float] = None) -> None:
        """Gives the lock a lease that counts from now."""
        status = lib.gannet_client_extend(self._open(), lock.c_lock, ttl_ms(lease), call(deadline))
        if status:
            raise_last(status)

    def locks(self, server: int = 0, deadline: Optional[float] = None) -> List[HeldLock]:
        """All locks that anybody holds at a server."""
        return [HeldLock(lock.word, lock.index, lock.session_id, lock.lease_ms / 1000 or None,
                         ffi.string(lock.holder).decode())
                for lock in list_of("gannet_held_lock", lib.gannet_client_locks, self._open(), server, call(deadline))]

    def break_lock(self, key: Key, deadline: Optional[float] = None) -> bool:
        """Breaks the key's lock, whoever holds it. Returns False if nobody did."""
        raw = key_bytes(key)
        return self._was_there(lib.gannet_client_break_lock(self._open(), raw, len(raw), call(deadline)))

    # --- registered memory

    def allocate(self, size: int) -> Memory:
        """Makes registered memory."""
        return registered.allocate(lib.gannet_client_allocate, self._open(), size)

    def register(self, buffer: Buffer, *, remote_read: bool = True) -> Memory:
        """Registers memory of the caller's own. put_from needs `remote_read`, get_into does not."""
        return registered.register(lib.gannet_client_register, self._open(), buffer, remote_read)

    # --- servers

    def ping(self, deadline: Optional[float] = None) -> None:
        """Makes a round trip through the CPU of each server."""
        status = lib.gannet_client_ping(self._open(), call(deadline), NULL)
        if status:
            raise_last(status)

    def stats(self, deadline: Optional[float] = None) -> List[Dict[str, int]]:
        """What each server counts, in the order of the servers."""
        n = lib.gannet_client_server_count(self._open())
        stats = ffi.new("gannet_stats[]", n)
        for of_server in stats:
            of_server.size = ffi.sizeof("gannet_stats")
        status = lib.gannet_client_stats(self._open(), call(deadline), stats)
        if status:
            raise_last(status)
        return [stats_of(of_server) for of_server in stats]

    def servers(self) -> List[Dict[str, Any]]:
        """Describes the connection to each server."""
        opened = self._open()
        return [client_server_info(opened, i)
                for i in range(lib.gannet_client_server_count(opened))]

    def storage(self, server: int = 0, deadline: Optional[float] = None) -> Storage:
        """Where a server keeps its items, and what a power cut would take."""
        return storage_of(lib.gannet_client_storage, self._open(), server, call(deadline))

    def snapshot(self, server: int = 0, deadline: float = 3600.0) -> Storage:
        """Has a server with --data write a snapshot of all items, which begins after this call, and
        waits until it is whole. Returns the storage with that snapshot. FailedPrecondition: the server
        has no --data. DeadlineExceeded: it is still being written. SnapshotFailed: it was given up."""
        try:
            return storage_of(lib.gannet_client_snapshot, self._open(), server, call(deadline))
        except LockLost as given_up:  # its status is that of a lost lock
            raise SnapshotFailed(str(given_up)) from None

    def connected_clients(self, server: int = 0, deadline: Optional[float] = None) -> List[ConnectedClient]:
        """The connections of all clients of a server."""
        return connected_clients_of(self._open(), server, call(deadline))

    def slow_requests(self, server: int = 0, deadline: Optional[float] = None) -> List[SlowRequest]:
        """The last requests that took a server long (its --slowlog_us), the newest first."""
        return slow_requests_of(self._open(), server, call(deadline))

    # --- what these share

    def _open(self) -> Any:
        return self._c or self._fail()

    def _fail(self) -> NoReturn:
        raise ValueError("the client is closed")

    def _get_whole(self, key: bytes, deadline: Optional[float]) -> Optional[Item]:
        value = ffi.new("gannet_value *")
        return self._item(lib.gannet_client_get(self._open(), key, len(key), call(deadline), value), value)

    @staticmethod
    def _item(status: int, value: Any) -> Optional[Item]:
        if status == _NOT_FOUND:
            return None
        if status:
            raise_last(status)
        if not value.data:
            return None
        item = Item(_buffer(value.data, value.size)[:], info_of(value.info))
        lib.gannet_free(value.data)
        return item

    def _change(self, function: Any, key: Key, piece: Union[str, Buffer], options: Dict[str, Any]) -> int:
        raw = key_bytes(key)
        data, size = value_data(piece)
        version = self._of_thread.version
        status = function(self._open(), raw, len(raw), data, size, call(**options), version)
        if status:
            raise_last(status)
        return version[0]

    def _each_was_there(self, function: Any, keys: Sequence[Key], return_errors: bool, deadline: Optional[float]
                        ) -> List[Any]:
        kept = [ffi.from_buffer(key_bytes(key)) for key in keys]
        asked = ffi.new("gannet_key[]", len(kept))
        statuses = ffi.new("gannet_status[]", len(kept))
        for at, raw in zip(asked, kept):
            at.data, at.size = raw, len(raw)
        status = function(self._open(), asked, len(kept), call(deadline), statuses)
        return answers_of_keys(status, return_errors, list(statuses), [True] * len(kept), False)

    @staticmethod
    def _was_there(status: int) -> bool:
        if status == _NOT_FOUND:
            return False
        if status:
            raise_last(status)
        return True
