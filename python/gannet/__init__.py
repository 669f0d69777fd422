"""Gannet: an in-memory key-value store that clients read with one-sided RDMA.

    import gannet

    with gannet.Client("10.0.0.1:7471") as client:
        client.put("greeting", b"hello", ttl=60)
        client.get("greeting")          # b"hello", or None

gannet.aio.Client is the same for asyncio. Keys are str or bytes, values bytes or any buffer. Times
are in seconds. Errors are exceptions, subclasses of gannet.Error; a key that does not exist is none.

Without an RDMA device, the wheel uses softverbs by itself; with another package, run the program as
`softverbs-run python3 program.py`. The wheel has a server, too: `python -m gannet.server`.
"""

from gannet import verbs as _verbs

_verbs.load()

from gannet._capi import lib as _lib, ffi as _ffi
from gannet.client import Client
from gannet.errors import (AlreadyExists, DeadlineExceeded, Error, FailedPrecondition, InternalError,
                           InvalidArgument, LockLost, NotFound, OutOfRange, PermissionDenied,
                           ResourceExhausted, SnapshotFailed, Unavailable, Unimplemented, OutcomeUnknown)
from gannet.items import Item, ItemInfo
from gannet.locks import HeldLock, Lock
from gannet.memory import Memory, Span
from gannet.servers import ConnectedClient, Rail, SlowRequest, Snapshot, Storage
from gannet.walk import HotKey, WalkedItem, hot_keys, walk

__version__: str = _ffi.string(_lib.gannet_version()).decode()
__all__ = ["AlreadyExists", "Client", "ConnectedClient", "DeadlineExceeded", "Error", "FailedPrecondition", "HeldLock", "HotKey",
           "InternalError", "InvalidArgument", "Item", "ItemInfo", "Lock", "LockLost", "Memory",
           "NotFound", "OutOfRange", "OutcomeUnknown", "PermissionDenied", "Rail", "ResourceExhausted",
           "SlowRequest", "Snapshot", "SnapshotFailed", "Span", "Storage", "Unavailable", "Unimplemented", "WalkedItem", "hot_keys", "walk"]
