"""Turns Python's arguments into those of the C interface."""

from typing import Any, Iterable, List, Optional, Tuple, Union

from gannet._capi import ffi, lib

Key = Union[str, bytes, bytearray, memoryview]
Buffer = Any  # whatever has the buffer protocol: bytes, memoryview, array, numpy's and torch's on the CPU

NULL = ffi.NULL


def split_servers(servers: str) -> List[str]:
    """Splits a list of servers at commas and spaces. A group, "cluster:HOST:PORT,HOST:PORT", takes all that follows."""
    words = servers.replace(",", " ").split()
    for i, word in enumerate(words):
        if word.startswith("cluster:") and not word[len("cluster:"):].isdigit():
            return words[:i] + [",".join(words[i:])]
    return words


def key_bytes(key: Key) -> bytes:
    if type(key) is bytes:
        return key
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, (bytearray, memoryview)):
        return bytes(key)
    raise TypeError(f"a key is str or bytes, not {type(key).__name__}")


def value_data(value: Union[str, Buffer]) -> Tuple[Any, int]:
    """Returns what C can read the value from, and its length. Copies nothing but str."""
    if type(value) is bytes:
        return value, len(value)
    if isinstance(value, str):
        encoded = value.encode()
        return encoded, len(encoded)
    try:
        data = ffi.from_buffer(value)
    except TypeError:
        raise TypeError(f"a value is bytes, str or a buffer, not {type(value).__name__}") from None
    return data, len(data)


def writable(buffer: Buffer) -> Any:
    """Returns the memory of a buffer that is contiguous and may be written."""
    return ffi.from_buffer(buffer, require_writable=True)


def milliseconds(seconds: Optional[float]) -> int:
    """Returns at least 1, because 0 means "not given"."""
    if seconds is None:
        return 0
    if seconds < 0:
        raise ValueError("a time is not negative")
    return max(1, round(seconds * 1000))


def ttl_ms(ttl: Optional[float]) -> int:
    """None and 0 mean for ever."""
    return 0 if not ttl else milliseconds(ttl)


def call(deadline: Optional[float] = None, *, ttl: Optional[float] = None, flags: int = 0,
         if_absent: bool = False, if_present: bool = False, if_version: Optional[int] = None,
         lock: Any = None, initial: int = 0, lease: Optional[float] = None) -> Any:
    """Returns a gannet_call, or NULL if there is nothing in it."""
    if not (ttl or flags or if_absent or if_present or initial) and deadline is None and (
            if_version is None and lock is None and lease is None):
        return NULL
    made = ffi.new("gannet_call *")
    made.size = ffi.sizeof("gannet_call")
    made.deadline_ms = milliseconds(deadline)
    made.ttl_ms = ttl_ms(ttl)
    made.flags = flags
    if if_absent:
        made.conditions |= lib.GANNET_IF_ABSENT
    if if_present:
        made.conditions |= lib.GANNET_IF_PRESENT
    if if_version is not None:
        made.conditions |= lib.GANNET_IF_VERSION
        made.version = if_version
    if lock is not None:
        made.lock = lock.c_lock  # the caller's argument keeps it alive during the call
    made.initial = initial
    made.lease_ms = milliseconds(lease)
    return made


def connection(servers: Union[str, Iterable[str]], device: str, deadline: float, connect_timeout: float,
               location_cache_bytes: Optional[int], depth: int, wait: str, reconnect: bool,
               auth_file: Optional[str], near_cache_bytes: int = 0, rails: int = 8) -> Tuple[Any, Any, List[Any]]:
    """Returns an array of servers, a gannet_options, and what both point to."""
    names = [ffi.new("char[]", name.encode()) for name in ([servers] if isinstance(servers, str) else servers)]
    if wait not in ("adaptive", "poll"):
        raise ValueError("wait is 'adaptive' or 'poll'")
    options = ffi.new("gannet_options *")
    options.size = ffi.sizeof("gannet_options")
    owned = list(names)
    for field, text in (("device", device), ("auth_file", auth_file)):
        if text:
            owned.append(ffi.new("char[]", text.encode()))
            setattr(options, field, owned[-1])
    options.deadline_ms = milliseconds(deadline)
    options.connect_timeout_ms = milliseconds(connect_timeout)
    options.location_cache_bytes = location_cache_bytes or 0
    options.no_location_cache = location_cache_bytes == 0
    options.near_cache_bytes = near_cache_bytes
    options.rails = rails
    options.depth = depth
    options.wait = lib.GANNET_WAIT_POLL if wait == "poll" else lib.GANNET_WAIT_ADAPTIVE
    options.no_reconnect = not reconnect
    return ffi.new("char *[]", names), options, owned
