"""What is known of an item."""

from typing import Any, NamedTuple, Optional


class ItemInfo(NamedTuple):
    """What is stored beside a value."""

    version: int
    flags: int
    size: int  # of the whole value, even if the buffer was shorter
    ttl: Optional[float]  # seconds that it still lived when it was read; None: for ever, or nearly over


class Item(NamedTuple):
    """A value and what is stored beside it."""

    value: bytes
    info: ItemInfo

    @property
    def version(self) -> int:
        return self.info.version


def info_of(info: Any) -> ItemInfo:
    """From a gannet_item_info."""
    ttl = info.ttl_left_ms / 1000 if info.ttl_left_ms else None
    return ItemInfo(info.version, info.flags, info.value_size, ttl)
