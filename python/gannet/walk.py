"""Walks through all items of a server."""

import queue
import threading
from typing import Any, Iterator, List, NamedTuple, Optional

from gannet._capi import ffi, lib
from gannet.arguments import connection
from gannet.errors import error_of
from gannet.items import ItemInfo, info_of
from gannet.servers import list_of

_AHEAD = 256  # items that the walk has found and nobody has taken yet
_LOOK_SECONDS = 0.1
_BY_LOAD = 2**32 - 1


class WalkedItem(NamedTuple):
    """An item that a walk found."""

    key: bytes
    value: bytes  # b"" if it is long (over some 4,000 bytes): a walk does not READ those
    info: ItemInfo
    block_size: int  # bytes that it takes of the server's memory


@ffi.def_extern(error=0)
def gannet_show_walked_item(context: Any, item: Any) -> int:
    return ffi.from_handle(context).show(item)


class _Walk:
    """A walk in a thread of its own, because C calls `show` and Python wants an iterator."""

    def __init__(self, names: Any, options: Any, owned: Any, reads_per_second: Optional[int]) -> None:
        self.found: "queue.Queue[Any]" = queue.Queue(_AHEAD)  # items, and None or an error at the end
        self.stopped = False
        self._arguments = names[0], options, _pace_of(reads_per_second)
        self._owned = names, owned
        self.thread = threading.Thread(target=self._run, name="gannet-walk", daemon=True)

    def show(self, item: Any) -> int:
        key = ffi.buffer(item.key, item.key_size)[:]
        value = ffi.buffer(item.value, item.value_size)[:] if item.value_size else b""
        return self._hand_over(WalkedItem(key, value, info_of(item.info), item.block_size))

    def _hand_over(self, what: Any) -> bool:
        """Waits for room. Returns False if nobody takes items any more."""
        while not self.stopped:
            try:
                self.found.put(what, timeout=_LOOK_SECONDS)
                return True
            except queue.Full:
                pass
        return False

    def _run(self) -> None:
        context = ffi.new_handle(self)
        name, options, reads_per_second = self._arguments
        status = lib.gannet_walk(name, options, reads_per_second, lib.gannet_show_walked_item, context)
        text = ffi.string(lib.gannet_last_error()).decode(errors="replace")
        self._hand_over(error_of(status, text) if status else None)


def _pace_of(reads_per_second: Optional[int]) -> int:
    return _BY_LOAD if reads_per_second is None else reads_per_second


class HotKey(NamedTuple):
    """One of the keys that are used most."""

    key: bytes
    uses: float  # of late, as the server estimates
    at_least: bool  # it was used at least so often: the server counts no further
    info: ItemInfo
    block_size: int
    leased: bool = False  # clients may answer from copies of it now


def hot_keys(server: str = "127.0.0.1:7471", count: int = 10, *, reads_per_second: Optional[int] = None, device: str = "auto",
             deadline: float = 1.0, connect_timeout: float = 3.0, auth_file: Optional[str] = None) -> List[HotKey]:
    """Returns the `count` keys of one server that are used most, the hottest first, by one-sided READs as
    walk does. FailedPrecondition: the server keeps no record of uses, because it does not evict."""
    names, options, _owned = connection(servers=server, device=device, deadline=deadline,
                                        connect_timeout=connect_timeout, location_cache_bytes=0, depth=0,
                                        wait="adaptive", reconnect=True, auth_file=auth_file)
    return [HotKey(ffi.buffer(c.key, c.key_size)[:], c.uses, bool(c.at_least), info_of(c.info), c.block_size, bool(c.leased))
            for c in list_of("gannet_hot_key", lib.gannet_hot_keys, names[0], options, _pace_of(reads_per_second), count)]


def walk(server: str = "127.0.0.1:7471", *, reads_per_second: Optional[int] = None, device: str = "auto",
         deadline: float = 1.0, connect_timeout: float = 3.0, auth_file: Optional[str] = None
         ) -> Iterator[WalkedItem]:
    """Yields all items of one server, in no order, by one-sided READs over a connection of its own.

    The server's CPU takes no part. At most `reads_per_second`; 0: as many as it can; None: by
    load, so that it takes what others leave. A key that is in
    the store from the beginning to the end is shown at least once. Others may be shown or not, and
    while others write, a key may be shown more than once. Unavailable: the connection broke; begin
    anew. Starts a thread, which ends with the iterator.
    """
    names, options, owned = connection(server, device, deadline, connect_timeout, 0, 0, "adaptive", True,
                                       auth_file)
    walking = _Walk(names, options, owned, reads_per_second)
    walking.thread.start()
    try:
        while True:
            found = walking.found.get()
            if isinstance(found, WalkedItem):
                yield found
            elif found is None:
                return
            else:
                raise found
    finally:
        walking.stopped = True
        walking.thread.join()
