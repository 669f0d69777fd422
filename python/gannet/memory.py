"""Memory that is registered with the RDMA device: long values land there without a copy."""

from typing import Any, List, NamedTuple, Sequence, Tuple, Union

from gannet._capi import ffi, lib
from gannet.arguments import Buffer, writable
from gannet.errors import raise_last


class Memory:
    """Registered memory, made by Client.allocate or Client.register.

    Has the buffer protocol by `view`. Close it, or leave its `with`, when nothing uses it any more,
    views of it included. Without that it is freed when it and all views of it are gone. It may outlive
    its client.
    """

    def __init__(self, c_memory: Any, owner: Any = None) -> None:
        def free(_: Any, owner: Any = owner) -> None:  # `owner`: the buffer whose memory it is, if it is somebody else's
            lib.gannet_memory_free(c_memory)
        self.c_memory = c_memory
        # Views keep it alive, and with it the memory.
        self._data: Any = ffi.gc(ffi.cast("char *", lib.gannet_memory_data(c_memory)), free)

    @property
    def view(self) -> memoryview:
        """The memory itself, writable."""
        size = len(self)
        return memoryview(ffi.buffer(self._data, size))

    def __len__(self) -> int:
        return lib.gannet_memory_size(self._open())

    def __getitem__(self, part: slice) -> "Span":
        """memory[10:20] is the part to read or write."""
        start, stop, step = part.indices(len(self))
        if step != 1 or stop <= start:
            raise ValueError("a part of memory is contiguous and not empty")
        return Span(self, start, stop - start)

    def close(self) -> None:
        """Deregisters the memory. Allocated memory is gone then, and what `view` returned is not valid."""
        if self.c_memory is not None:
            self.c_memory = None
            ffi.release(self._data)
            self._data = None

    def __enter__(self) -> "Memory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> Any:
        if self.c_memory is None:
            raise ValueError("the memory is closed")
        return self.c_memory


class Span(NamedTuple):
    """A part of registered memory."""

    memory: Memory
    offset: int
    size: int


Place = Union[Memory, Span, Sequence[Union[Memory, Span]]]


def spans_of(place: Place) -> Tuple[Any, int]:
    """Returns an array of gannet_span, and its length."""
    parts: List[Any] = [place] if isinstance(place, (Memory, Span)) else list(place)
    parts = [part[:] if isinstance(part, Memory) else part for part in parts]
    spans = ffi.new("gannet_span[]", len(parts))
    for span, part in zip(spans, parts):
        span.memory, span.offset, span.size = part.memory._open(), part.offset, part.size
    # A struct of a C array is a reference to the array, so the loop filled it in.
    return spans, len(parts)


def is_place(target: object) -> bool:
    return isinstance(target, (Memory, Span)) or (
        isinstance(target, (list, tuple)) and all(isinstance(part, (Memory, Span)) for part in target))


def allocate(function: Any, client: Any, size: int) -> Memory:
    made = ffi.new("gannet_memory **")
    status = function(client, size, made)
    if status:
        raise_last(status)
    return Memory(made[0])


def register(function: Any, client: Any, buffer: Buffer, remote_read: bool) -> Memory:
    data = writable(buffer)
    made = ffi.new("gannet_memory **")
    status = function(client, data, len(data), 0 if remote_read else lib.GANNET_NO_REMOTE_READ, made)
    if status:
        raise_last(status)
    return Memory(made[0], data)
