"""Locks that clients hold."""

from typing import Any, NamedTuple, Optional

from gannet._capi import ffi
from gannet.errors import LockLost


class LockHandle:
    """What a lock is of both clients, the blocking one and that for asyncio."""

    def __init__(self, client: Any, c_lock: Any) -> None:
        self._client = client
        self.c_lock = c_lock

    @property
    def key(self) -> bytes:
        return ffi.buffer(self.c_lock.key, self.c_lock.key_size)[:]

    @property
    def word(self) -> int:
        """Names the connection that holds the lock."""
        return self.c_lock.word


class Lock(LockHandle):
    """A held lock of a key. `with` unlocks it at the end.

        with client.lock("key") as lock:
            item = client.gets("key")
            client.put("key", new, if_version=item.version, lock=lock)

    It is lost, without notice, when the connection breaks or its lease is over. A write that carries
    it is then refused: LockLost.
    """

    def unlock(self, deadline: Optional[float] = None) -> None:
        """Raises LockLost if the lock was lost before."""
        self._client.unlock(self, deadline)

    def extend(self, lease: float, deadline: Optional[float] = None) -> None:
        """Gives the lock a lease that counts from now."""
        self._client.extend(self, lease, deadline)

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, error: Any, *_: object) -> None:
        try:
            self.unlock()
        except LockLost:
            # The body's own error says more.
            if error is None:
                raise


class HeldLock(NamedTuple):
    """A lock that somebody holds, as the server sees it."""

    word: int
    index: int
    session_id: int
    lease: Optional[float]  # seconds until the server breaks it
    holder: str  # its address; "": its connection is gone
