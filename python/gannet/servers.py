"""What is known of servers."""

from typing import Any, Dict

from gannet._capi import ffi, lib
from gannet.errors import raise_last

_STATS = [name for name, _ in ffi.typeof("gannet_stats").fields if name not in ("size", "status", "reserved")]
_INFO = [name for name, _ in ffi.typeof("gannet_server_info").fields]
_FLAGS = ("connected", "unreachable", "authenticated", "read_only")


def stats_of(stats: Any) -> Dict[str, int]:
    """From a gannet_stats."""
    return {name: getattr(stats, name) for name in _STATS}


def server_info(function: Any, client: Any, server: int) -> Dict[str, Any]:
    """Asks for a gannet_server_info."""
    made = ffi.new("gannet_server_info **")
    status = function(client, server, made)
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
    return info
