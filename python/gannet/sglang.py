"""SGLang keeps pages of its KV cache in Gannet: HiCache's storage backend `dynamic` loads this module.

    {"backend_name": "gannet", "module_path": "gannet.sglang", "class_name": "Storage",
     "interface_v1": 1, "server": "10.0.0.1:7471"}

docs/connectors.md has the options. A page is one item, however many pieces of memory it lies in.
"""

import logging
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, NoReturn, Optional, Sequence, Set

from sglang.srt.mem_cache.hicache_storage import HiCacheStorage, PoolHitPolicy, PoolName, PoolTransferResult

from gannet.cache import Cache, Outcome, Pieces, memory_at

__all__ = ["Storage"]

_log = logging.getLogger("gannet")

_OPTIONS = ("ttl", "deadline", "connect_timeout", "device", "auth_file")
# Each rank has its own of these, also where all ranks have the same KV pages.
_OF_EACH_RANK = ("mamba",)
# These are a second model's, which may be of another kind than the first.
_OF_THE_DRAFT = ("draft", "draft_swa")
_REPLICATED_POOL = "MLATokenToKVPoolHost"
_KV = "kv"

_Call = Callable[[List[str], List[Pieces]], Outcome]


class _Pages(NamedTuple):
    """What SGLang asks of one pool."""

    pool: str
    keys: List[str]
    host_indices: Any = None  # without them it does not ask for memory


class _Pool(NamedTuple):
    host_pool: Any
    prefix: str  # of the names of its pages


class Storage(HiCacheStorage):
    """Gets and stores pages from and to the memory of the host pools, in one call for each batch.

    SGLang calls it from several threads. No call raises because of a server: its pages are misses. A
    page that is there is not stored again, because its name tells its content.
    """

    def __init__(self, storage_config: Any, kwargs: Optional[Dict[str, Any]] = None) -> None:
        extra = storage_config.extra_config or {}
        if "server" not in extra:
            raise ValueError('gannet: the extra config of HiCache\'s storage needs "server": "HOST:PORT"')
        if not extra.get("interface_v1"):
            raise ValueError('gannet: the extra config of HiCache\'s storage needs "interface_v1": 1, because pages '
                             "go from and to the host pool's own memory")
        self._config = storage_config
        self._namespace = extra.get("namespace", "sglang")
        self._pools: Dict[str, _Pool] = {}
        self._cache = Cache(extra["server"], log_errors=True,
                            **{name: extra[name] for name in _OPTIONS if name in extra})

    def close(self) -> None:
        """Ends the connections. SGLang's threads have ended before."""
        self._cache.close()
        self._pools.clear()

    # --- the host's memory

    def register_mem_pool_host(self, mem_pool_host: Any) -> None:
        super().register_mem_pool_host(mem_pool_host)
        self._add_pool(_KV, mem_pool_host)

    def register_mem_host_pool_v2(self, host_pool: Any, host_pool_name: Any) -> None:
        super().register_mem_host_pool_v2(host_pool, host_pool_name)
        if str(host_pool_name) != _KV:  # which register_mem_pool_host has
            self._add_pool(str(host_pool_name), host_pool)

    def _add_pool(self, name: str, pool: Any) -> None:
        if getattr(pool, "layout", None) == "layer_first":
            raise ValueError("gannet: a page of the layout layer_first has a piece for each layer; start SGLang with "
                             "--hicache-mem-layout page_first or page_first_direct")
        self._pools[name] = _Pool(pool, _prefix_of(self._config, self._namespace, name, pool))
        for tensor in _tensors_of(pool):
            self._cache.register(memory_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()))

    # --- pages of the KV pool

    def batch_exists(self, keys: List[str], extra_info: Any = None) -> int:
        """Returns how many of the first keys exist without a gap."""
        return _leading(self._each(self._exists, [_Pages(_KV, keys)])[0])

    def batch_get_v1(self, keys: List[str], host_indices: Any, extra_info: Any = None) -> List[bool]:
        return self._each(self._cache.get_into, [_Pages(_KV, keys, host_indices)])[0]

    def batch_set_v1(self, keys: List[str], host_indices: Any, extra_info: Any = None) -> List[bool]:
        return self._each(self._cache.put_missing, [_Pages(_KV, keys, host_indices)])[0]

    # --- pages of several pools

    def batch_exists_v2(self, keys: List[str], pool_transfers: Optional[List[Any]] = None, extra_info: Any = None
                        ) -> PoolTransferResult:
        """Returns the longest prefix that each pool can serve, and all other prefixes that they can.

        A pool that says nothing of prefixes (BLOCK_GROUPS) is not asked, and limits nothing.
        """
        transfers = [transfer for transfer in pool_transfers or ()
                     if transfer.hit_policy in (PoolHitPolicy.ALL_PAGES, PoolHitPolicy.TRAILING_PAGES)]
        in_kv, *in_pools = self._each(self._exists, [
            _Pages(_KV, keys), *(_Pages(str(transfer.name), keys) for transfer in transfers)])
        pages = _leading(in_kv)
        hits: Dict[Any, int] = {PoolName.KV: pages} if pages else {}
        prefixes = set(range(1, pages + 1))
        for transfer, found in zip(transfers, in_pools):
            trailing = transfer.hit_policy == PoolHitPolicy.TRAILING_PAGES
            served = _prefixes(found[:pages], max(1, len(transfer.keys or ())) if trailing else pages)
            if served:
                hits[transfer.name] = max(served)
            prefixes &= served
        return PoolTransferResult(max(prefixes, default=0), hits, sorted(prefixes))

    def batch_get_v2(self, transfers: List[Any], extra_info: Any = None) -> Dict[str, List[bool]]:
        return self._move_v2(self._cache.get_into, transfers)

    def batch_set_v2(self, transfers: List[Any], extra_info: Any = None) -> Dict[str, List[bool]]:
        return self._move_v2(self._cache.put_missing, transfers)

    # --- what is left of the interface

    def exists(self, key: str) -> bool:
        return self.batch_exists([key]) == 1

    def clear(self) -> bool:
        """Does nothing, because others keep items in the same servers."""
        _log.warning("gannet: SGLang does not clear the store, which others may use; kvcli flush does")
        return False

    # SGLang calls these only without interface_v1.
    def get(self, key: str, target_location: Any = None, target_sizes: Any = None) -> NoReturn:
        raise NotImplementedError("gannet: needs interface_v1")

    def batch_get(self, keys: List[str], target_locations: Any = None, target_sizes: Any = None) -> NoReturn:
        raise NotImplementedError("gannet: needs interface_v1")

    def set(self, key: str, value: Any = None, target_location: Any = None, target_sizes: Any = None) -> NoReturn:
        raise NotImplementedError("gannet: needs interface_v1")

    def batch_set(self, keys: List[str], values: Any = None, target_locations: Any = None, target_sizes: Any = None
                  ) -> NoReturn:
        raise NotImplementedError("gannet: needs interface_v1")

    # --- what these share

    def _move_v2(self, move: _Call, transfers: List[Any]) -> Dict[Any, List[bool]]:
        moved = self._each(move, [_Pages(str(transfer.name), transfer.keys or [], transfer.host_indices)
                                  for transfer in transfers])
        return {transfer.name: each for transfer, each in zip(transfers, moved)}

    def _exists(self, names: List[str], _: List[Pieces]) -> Outcome:
        return self._cache.exists(names)

    def _each(self, call: _Call, asked: Sequence[_Pages]) -> List[List[bool]]:
        """Makes one call for the pages of all pools. Returns for each pool what became of each page."""
        names: List[str] = []
        buffers: List[Pieces] = []
        without: List[Optional[List[bool]]] = []  # the answers that need no call
        for pages in asked:
            pool = self._pools.get(pages.pool)
            answer = _answer_without(pool, pages)
            without.append(answer)
            if pool is not None and answer is None:
                names += [f"{pool.prefix}@{key}" for key in pages.keys]
                buffers += [] if pages.host_indices is None else _places(pool.host_pool, pages)
        each = iter(call(names, buffers).each)
        return [[next(each) for _ in pages.keys] if answer is None else answer for pages, answer in zip(asked, without)]


def _answer_without(pool: Optional[_Pool], pages: _Pages) -> Optional[List[bool]]:
    """Returns what is true of the pages of a pool that has none in the store, or None."""
    if pool is None:
        _log.error("gannet: SGLang did not register the pool %s", pages.pool)
        return [False] * len(pages.keys)
    if pages.pool == _KV and getattr(pool.host_pool, "kv_buffer", None) is None:
        return [True] * len(pages.keys)  # it only numbers the pages, whose bytes are in the other pools
    if pages.host_indices is not None and len(pages.host_indices) != len(pages.keys) * (pool.host_pool.page_size or 1):
        _log.error("gannet: %d indices are not %d pages of the pool %s", len(pages.host_indices), len(pages.keys),
                   pages.pool)
        return [False] * len(pages.keys)
    return None


def _places(host_pool: Any, pages: _Pages) -> List[Pieces]:
    """Returns the pieces of memory of each page."""
    if not pages.keys:
        return []
    addresses, sizes = host_pool.get_page_buffer_meta(pages.host_indices)
    pieces = [memory_at(address, size) for address, size in zip(addresses, sizes)]
    n = len(pieces) // len(pages.keys)
    return [pieces[i * n:(i + 1) * n] for i in range(len(pages.keys))]


def _prefix_of(config: Any, namespace: str, name: str, host_pool: Any) -> str:
    """Returns what the names of a pool's pages begin with: all that their bytes depend on, but the tokens."""
    parts = [namespace, config.model_name, name, getattr(host_pool, "layout", None),
             str(getattr(host_pool, "dtype", "")).replace("torch.", ""), getattr(host_pool, "storage_format_tag", None)]
    if config.pp_size > 1:
        parts.append(f"pp{config.pp_rank}.{config.pp_size}")
    if config.attn_cp_size > 1:
        parts.append(f"cp{config.attn_cp_rank}.{config.attn_cp_size}")
    if not config.is_mla_model or _is_of_each_rank(name, host_pool):
        parts.append(f"tp{config.tp_rank}.{config.tp_size}")
    return "@".join(filter(None, parts))


def _is_of_each_rank(name: str, host_pool: Any) -> bool:
    """Whether the ranks of a model whose KV pages are the same for all have different pages of this pool."""
    if name in _OF_THE_DRAFT:
        return all(base.__name__ != _REPLICATED_POOL for base in type(host_pool).__mro__)
    return name in _OF_EACH_RANK


def _tensors_of(host_pool: Any) -> Iterator[Any]:
    """Yields the tensors that a pool's pages lie in."""
    listed = getattr(host_pool, "get_hybrid_pool_buffer", None)
    found = listed() if listed is not None else getattr(host_pool, "kv_buffer", None)
    for tensor in found if isinstance(found, (list, tuple)) else [found]:
        if tensor is not None and tensor.numel():
            yield tensor


def _leading(found: List[bool]) -> int:
    return found.index(False) if False in found else len(found)


def _prefixes(found: List[bool], window: int) -> Set[int]:
    """Returns the lengths of the prefixes whose last `window` pages were found, or all if there are fewer."""
    lengths, run = set(), 0
    for length, there in enumerate(found, 1):
        run = run + 1 if there else 0
        if run >= min(window, length):
            lengths.add(length)
    return lengths
