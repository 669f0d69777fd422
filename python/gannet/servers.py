"""What is known of servers."""

from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from gannet._capi import ffi, lib
from gannet.errors import raise_last

_STATS = [name for name, _ in ffi.typeof("gannet_stats").fields if name not in ("size", "status", "reserved")]
_INFO = [name for name, _ in ffi.typeof("gannet_server_info").fields]
_FLAGS = ("connected", "unreachable", "authenticated", "read_only")


class Snapshot(NamedTuple):
    """A whole snapshot in a server's directory."""

    position: int  # of the journal, when it was begun
    items: int
    bytes: int
    completed: Optional[float]  # seconds since 1970 by the server's clock; None: an earlier run wrote it


class Storage(NamedTuple):
    """Where a server keeps its items."""

    endpoint: str
    sync: str  # of --data: "none", "interval" or "always"; "": there is no --data
    directory: str  # --data; "": none
    memory_file: str  # --memory_file; "": none
    behind_bytes: int  # the bytes that a power cut would take now
    behind: float  # the age of the oldest of them, in seconds
    snapshot: Optional[Snapshot]  # the newest


class ConnectedClient(NamedTuple):
    """A connection of a client. The counts are those of its session, since that began. Only the entry
    of the session's first connection has them; in the others they are 0."""

    peer: str  # its address
    last_request: str  # "get", "put" ...; "heartbeat" if there was none
    silent: float  # seconds
    connected: float  # seconds
    requests: int
    hits: int  # the client's own report, as the next two
    misses: int
    reads: int
    get_p50: float  # seconds, from its last report that had GETs; 0: none had
    get_p99: float
    session_id: int
    connection_id: int
    connection_index: int  # in its session
    worker: int  # of the server
    unanswered: int  # requests
    key_id: int  # of the key that it proved; 0: none
    read_only: bool


class Rail(NamedTuple):
    """A rail of a server, as a client uses it: an address with a device."""

    address: str
    connected: bool  # the client, by it
    up: bool  # its port, as the server says; as what follows
    works: int  # READs and messages that were posted to it since the session's last connect
    mtu_bytes: int  # of its port's packets; 0: not known
    mbit_per_second: int  # of its port; 0: not known
    port: int  # rails with the same number are of one port of the server; 0: not known
    connections: int  # of all clients, if the port is known


class SlowRequest(NamedTuple):
    """A request that took a server long."""

    answered: float  # seconds since 1970, by the server's clock
    took: float  # seconds
    request: str  # "get", "put" ...
    peer: str  # the client's address
    session_id: int
    key_size: int  # of the whole key
    value_size: int
    key: bytes  # at most its first 64 bytes


def _text(chars: Any) -> str:
    return ffi.string(chars).decode(errors="replace")


def storage_of(function: Any, client: Any, server: int, call: Any) -> Storage:
    """Asks for a gannet_storage."""
    made = ffi.new("gannet_storage **")
    status = function(client, server, call, made)
    if status:
        raise_last(status)
    c = made[0]
    snapshot = None
    if c.has_snapshot:
        snapshot = Snapshot(c.snapshot_position, c.snapshot_items, c.snapshot_bytes,
                            c.snapshot_completed_ms / 1000 or None)
    storage = Storage(_text(c.endpoint), _text(c.sync), _text(c.directory), _text(c.memory_file),
                      c.behind_bytes, c.behind_ms / 1000, snapshot)
    lib.gannet_free(c)
    return storage


def list_of(c_type: str, function: Any, *arguments: Any) -> Iterator[Any]:
    """Yields the structures of an array that a function of C allocates."""
    found = ffi.new(f"{c_type} **")
    count = ffi.new("size_t *")
    status = function(*arguments, found, count)
    if status:
        raise_last(status)
    try:
        yield from found[0][0:count[0]]
    finally:
        lib.gannet_free(found[0])


def connected_clients_of(client: Any, server: int, call: Any) -> List[ConnectedClient]:
    """Asks for all gannet_connected_client."""
    return [ConnectedClient(_text(c.peer), _text(c.last_request), c.silent_ms / 1000, c.connected_ms / 1000,
                            c.requests, c.hits, c.misses, c.reads, c.get_p50_ns / 1e9, c.get_p99_ns / 1e9,
                            c.session_id, c.connection_id, c.connection_index, c.worker, c.unanswered,
                            c.key_id, bool(c.read_only))
            for c in list_of("gannet_connected_client", lib.gannet_client_connected_clients, client, server, call)]


def slow_requests_of(client: Any, server: int, call: Any) -> List[SlowRequest]:
    """Asks for all gannet_slow_request."""
    return [SlowRequest(c.answered_ms / 1000, c.took_us / 1e6, _text(c.request), _text(c.peer), c.session_id,
                        c.key_size, c.value_size, ffi.buffer(c.key, c.key_kept)[:])
            for c in list_of("gannet_slow_request", lib.gannet_client_slow_requests, client, server, call)]


def stats_of(stats: Any) -> Dict[str, int]:
    """From a gannet_stats."""
    return {name: getattr(stats, name) for name in _STATS}


def client_server_info(client: Any, server: int) -> Dict[str, Any]:
    """Of a gannet_client."""
    return _server_info(lib.gannet_client_server_info, lib.gannet_client_rails, client, server)


def async_server_info(client: Any, server: int) -> Dict[str, Any]:
    """Of a gannet_async."""
    return _server_info(lib.gannet_async_server_info, lib.gannet_async_rails, client, server)


def _server_info(info_of: Any, rails_of: Any, client: Any, server: int) -> Dict[str, Any]:
    """Asks for a gannet_server_info, and its rails."""
    made = ffi.new("gannet_server_info **")
    status = info_of(client, server, made)
    if status:
        raise_last(status)
    info: Dict[str, Any] = {}
    for name in _INFO:
        value = getattr(made[0], name)
        if isinstance(value, int):
            info[name] = bool(value) if name in _FLAGS else value
        else:
            info[name] = ffi.string(value).decode(errors="replace")
    lib.gannet_free(made[0])
    info["rails"] = [Rail(_text(c.address), bool(c.connected), bool(c.up), c.works, c.mtu_bytes, c.mbit_per_second,
                          c.port, c.connections)
                     for c in list_of("gannet_rail", rails_of, client, server)]
    return info
