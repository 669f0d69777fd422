#ifndef GANNET_CLIENT_ENGINE_ORDINARY_GETS_INLINE_H_
#define GANNET_CLIENT_ENGINE_ORDINARY_GETS_INLINE_H_

// The ordinary GET, of which there are millions a second. Its item is where the location cache
// says, or where the first slot of the home window with the key's tag says. The item is short, and
// proves itself.
//
//   location cached:               READ item (kReadingCached) -> proof -> report
//   not cached:  READ window (kReadingWindow) -> READ item (kReadingItem) -> proof -> report
//
// It is one straight path without a Lookup, since the phase tells all that a Lookup would keep.
// Everything else goes to a Lookup that is told of the same READs in the same order
// (LookupGets::GoOn): no slot with the tag, another key's item, an item that is torn, dead or
// long, or may be past its expiry, a home that was migrated to another index. So the path decides
// nothing but hits, and the item proves those.
//
// Inline, because engine.cc starts and ends operations of all kinds, and the path must be compiled
// into that. For the same reason these functions are given the table of operations: the engine has
// it at hand, and to load where it is would cost every GET several instructions.

#include <algorithm>

#include "client/engine/ordinary_gets.h"
#include "common/base/copy_bytes.h"
#include "common/base/data_path_checks.h"
#include "common/base/xxh3_inline.h"
#include "common/layout/item_proof.h"

namespace gannet {

inline ItemInfo MakeInfoWithoutExpiry(const ItemHeader& header) {
  return {header.version, header.flags, 0, header.value_bytes};
}

[[gnu::always_inline]] inline void OrdinaryGets::StartGet(OpTable& ops, EngineServer& server,
                                                          Op& op) {
  GANNET_CHECK_DATA_PATH(server.session->ready() && op.busy.quiet(), "it cannot be READ now");
  const Slot cached = server.cache.Find(op.hash, op.place);
  if (cached.empty()) {
    if (op.request.share_window) [[unlikely]]
      return ShareWindow(op);
    return ReadWindow(ops, server, op);
  }
  if (!ReadItem(server, op, cached, Op::Phase::kReadingCached)) [[unlikely]]
    lookups_.Start(op, cached);
}

// Returns false if the ordinary GET cannot READ this item: the slot is empty or names no class, or
// the item is too short, too long for the operation's own buffer, or outside of the region.
inline bool OrdinaryGets::ReadItem(EngineServer& server, Op& op, Slot slot, Op::Phase phase) {
  const uint32_t bytes = static_cast<uint32_t>(slot.read_bytes());
  constexpr uint32_t kHeaderBytes = sizeof(ItemHeader);
  if (bytes - kHeaderBytes > OpBuffers::kSmallItemBytes - kHeaderBytes) return false;
  const IndexView& view = server.session->terms().view;
  const uint64_t offset = slot.offset();
  if (offset + bytes > view.region_bytes) return false;
  op.ordinary.slot = slot;
  op.ordinary.seal = ItemSeal(op.hash, view.incarnation, offset);
  op.ordinary.bytes = bytes;
  op.phase.FastGoTo(phase);
  ++op.busy.in_flight;
  ++op.done.cost.reads;
  op.done.cost.read_bytes += bytes;
  server.session->sends().QueueRead({op.buffers->item, offset, op.number, bytes, {}});
  return true;
}

inline void OrdinaryGets::ReadWindow(OpTable& ops, EngineServer& server, Op& op) {
  op.phase.FastGoTo(Op::Phase::kReadingWindow);
  op.posted_ns = ops.now_ns();
  ++op.busy.in_flight;
  ++op.done.cost.reads;
  op.done.cost.read_bytes += kWindowBytes;
  const IndexGeometry& index = server.session->terms().view.index;
  server.session->sends().QueueRead({op.buffers->window[0],
                                     index.BucketOffset(op.hash.Home(index.homes)),
                                     op.number,
                                     kWindowBytes,
                                     {}});
}

inline void OrdinaryGets::OnRead(OpTable& ops, EngineServer& server, Op& op) {
  --op.busy.in_flight;
  if (op.phase == Op::Phase::kReadingCached) [[likely]]
    return OnItem(ops, op, true);
  if (op.phase == Op::Phase::kReadingItem) return OnItem(ops, op, false);
  if (op.phase == Op::Phase::kReadingWindow) return OnWindow(server, op);
  if (op.window.first_sharer != kInvalidOp || op.phase == Op::Phase::kReadingWindows) [[unlikely]]
    return OnSharedRead(server, op);
  lookups_.OnRead(op);
}

inline void OrdinaryGets::OnWindow(EngineServer& server, Op& op) {
  // The buffer is aligned and holds implicit-lifetime Buckets that the NIC filled in.
  const auto* window = reinterpret_cast<const Bucket*>(op.buffers->window[0]);
  if (BucketMeta(window->meta).migrated()) [[unlikely]]
    return lookups_.GoOn(op);
  const Slot slot = FirstMatchingSlot(window, op.hash.Tag());
  if (!ReadItem(server, op, slot, Op::Phase::kReadingItem)) [[unlikely]]
    lookups_.GoOn(op);
}

[[gnu::always_inline]] inline void OrdinaryGets::OnItem(OpTable& ops, Op& op, bool cached) {
  const std::byte* const item = op.buffers->item;
  const uint32_t bytes = op.ordinary.bytes;
  if (bytes < sizeof(ItemHeader)) __builtin_unreachable();  // ReadItem checked it
  if (!IsItemOf<Xxh3UnseededInline>({item, bytes}, op.ordinary.seal, op.key())) [[unlikely]]
    return lookups_.GoOn(op);
  const ItemHeader header = LoadItemHeader(item);
  if (!header.expiry().never()) [[unlikely]]
    return OnExpiringItem(op, cached);
  if (op.server->touches != nullptr) [[unlikely]]
    op.server->touches->Used(op.ordinary.slot);
  op.done.cost.from_cached_location = cached;
  if (!cached) op.server->cache.Remember(op.hash, op.place, op.ordinary.slot);
  Report(ops, op, MakeInfoWithoutExpiry(header));
}

// Tells the caller of Poll at once, and frees the slot, since nothing is busy with it.
[[gnu::always_inline]] inline void OrdinaryGets::Report(OpTable& ops, Op& op,
                                                        const ItemInfo& info) {
  const auto* value = reinterpret_cast<const char*>(op.buffers->item + sizeof(ItemHeader));
  if (reports_.full()) [[unlikely]]
    return lookups_.FinishHit(op, info, {value, info.value_bytes});
  reports_.Next() = {
      .user_data = op.request.user_data, .found = true, .info = info, .cost = op.done.cost};
  CopyValueBytes(op.request.out.data(), value,
                 std::min<size_t>(op.request.out.size(), info.value_bytes));
  op.done.cost = {};
  ops.Free(op);
}

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_ORDINARY_GETS_INLINE_H_
