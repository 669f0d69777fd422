// The ordinary GET, of which there are millions a second: the item is where the location cache
// says, or where the first slot of the home window with the key's tag says, is short, and proves
// itself.
//
//   location cached:                      READ item (kReadingCached) -> proof -> report
//   not:  READ window (kReadingWindow) -> READ item (kReadingItem) ---> proof -> report
//
// It is one straight lane without a Lookup, since what a Lookup would keep is known from the phase.
// Whatever else turns up (no slot, another key's item, one that is torn, dead, long or past its
// expiry) is left to a Lookup that is told of the same READs in the same order: GoOnAsLookup. So
// the lane decides nothing but hits, which the item proves by itself.

#include <algorithm>
#include <bit>

#include "client/engine/engine.h"
#include "common/base/copy_bytes.h"
#include "common/base/xxh3_inline.h"
#include "common/layout/item_proof.h"

namespace gannet {

// False: nothing that this lane may READ.
inline bool Engine::ReadItem(Server& server, Op& op, Slot slot, Op::Phase phase) {
  const uint32_t bytes = static_cast<uint32_t>(slot.read_bytes());
  // No such class, too short for an item, or too long for the operation's own buffer.
  constexpr uint32_t kHeaderBytes = sizeof(ItemHeader);
  if (bytes - kHeaderBytes > OpBuffers::kSmallItemBytes - kHeaderBytes) return false;
  const IndexView& view = server.session->view();
  const uint64_t offset = slot.offset();
  if (offset + bytes > view.region_bytes) return false;
  op.slot = slot;
  op.seal = ItemSeal(op.hash, view.incarnation, offset);
  op.item_bytes = bytes;
  op.phase = phase;
  ++op.busy.in_flight;
  ++op.done.cost.reads;
  op.done.cost.read_bytes += bytes;
  server.session->QueueRead({op.buffers->item, offset, op.number, bytes, {}});
  return true;
}

inline void Engine::ReadWindow(Server& server, Op& op) {
  op.phase = Op::Phase::kReadingWindow;
  op.posted_ns = now_ns_;
  ++op.busy.in_flight;
  ++op.done.cost.reads;
  op.done.cost.read_bytes += kWindowBytes;
  const IndexGeometry& index = server.session->view().index;
  server.session->QueueRead({op.buffers->window[0],
                             index.BucketOffset(op.hash.Home(index.homes)),
                             op.number,
                             kWindowBytes,
                             {}});
}

[[gnu::always_inline]] inline void Engine::StartOrdinaryGet(Server& server, Op& op) {
  const Slot cached = server.cache.Find(op.hash, op.place);
  if (ReadItem(server, op, cached, Op::Phase::kReadingCached)) [[likely]]
    return;
  if (!cached.empty()) return StartLookup(op.number, cached);
  if (op.request.share_window) [[unlikely]]
    return ShareWindow(server, op.number);
  ReadWindow(server, op);
}

// One that is still in a queue is not an ordinary one: Report would free its slot.
void Engine::StartGet(Server& server, Op& op) {
  if (!op.busy.quiet()) return StartLookup(op.number, server.cache.Find(op.hash, op.place));
  StartOrdinaryGet(server, op);
}

void Engine::StartFresh() {
  const int64_t now_ns = now_ns_;
  int64_t earliest_ns = earliest_deadline_ns_;
  for (Op* const fresh : fresh_.all()) {
    Op& op = *fresh;
    op.deadline_ns = now_ns + op.request.timeout_ns;
    earliest_ns = std::min(earliest_ns, op.deadline_ns);
    Server& server = ServerOf(op);
    if (op.request.type == OpType::kGet && server.session->ready() && order_.empty()) [[likely]] {
      StartOrdinaryGet(server, op);
    } else {
      StartInOrder(op);
    }
  }
  earliest_deadline_ns_ = earliest_ns;
  fresh_.Clear();
  if (!shared_windows_.empty()) [[unlikely]]
    ReadSharedWindows();
}

void Engine::OnWorksDone(uint32_t number, std::span<const InFlightWork::Work> works,
                         bool signaled) {
  Server& server = servers_[number];
  const InFlightWork::Work last = works.back();
  if (signaled && last.kind() != InFlightWork::Kind::kMessage) {
    ++ops_[last.op()].done.cost.completions;
  }
  for (const InFlightWork::Work work : works) {
    if (work.is_read()) [[likely]] {
      OnReadDone(server, ops_[work.op()]);
    } else if (work.kind() == InFlightWork::Kind::kCompareAndSwap) {
      --ops_[work.op()].busy.in_flight;
      OnCompareAndSwapDone(work.op());
      FreeIfQuiet(work.op());
    }
  }
}

inline void Engine::OnReadDone(Server& server, Op& op) {
  --op.busy.in_flight;
  if (op.phase == Op::Phase::kReadingCached) [[likely]]
    return OnItem(op, true);
  if (op.phase == Op::Phase::kReadingItem) return OnItem(op, false);
  if (op.phase == Op::Phase::kReadingWindow) return OnWindow(server, op);
  OnLookupRead(op.number);
}

inline void Engine::OnWindow(Server& server, Op& op) {
  // The buffer is aligned and holds implicit-lifetime Buckets that the NIC filled in.
  const auto* window = reinterpret_cast<const Bucket*>(op.buffers->window[0]);
  const Slot slot = FirstMatchingSlot(window, op.hash.Tag());
  if (!ReadItem(server, op, slot, Op::Phase::kReadingItem)) [[unlikely]]
    GoOnAsLookup(op.number);
}

void Engine::OnSharedWindow(Op& op) { OnWindow(ServerOf(op), op); }

[[gnu::always_inline]] inline void Engine::OnItem(Op& op, bool cached) {
  const std::byte* const item = op.buffers->item;
  const uint32_t bytes = op.item_bytes;
  if (bytes < sizeof(ItemHeader)) __builtin_unreachable();  // ReadItem saw to it
  if (!IsItemOf<Xxh3UnseededInline>({item, bytes}, op.seal, op.key())) [[unlikely]]
    return GoOnAsLookup(op.number);
  const ItemHeader header = LoadItemHeader(item);
  if (header.expiry_ms() != 0) [[unlikely]]
    return OnExpiringItem(op, cached);
  op.done.cost.from_cached_location = cached;
  if (!cached) op.server->cache.Remember(op.hash, op.place, op.slot);
  Report(op, NeverExpiring(header));
}

// Apart, so that what it needs costs the others nothing.
[[gnu::noinline]] void Engine::OnExpiringItem(Op& op, bool cached) {
  const ItemHeader header = LoadItemHeader(op.buffers->item);
  if (PastExpiry(*op.server, header)) return GoOnAsLookup(op.number);
  op.done.cost.from_cached_location = cached;
  if (!cached) op.server->cache.Remember(op.hash, op.place, op.slot);
  Report(op, InfoOf(*op.server, header));
}

// Tells the caller of Poll at once, and frees the slot, which nothing is busy with.
[[gnu::always_inline]] inline void Engine::Report(Op& op, const ItemInfo& info) {
  const auto* value = reinterpret_cast<const char*>(op.buffers->item + sizeof(ItemHeader));
  if (report_ == report_end_) [[unlikely]]
    return FinishHit(op.number, info, {value, info.value_bytes});
  *report_++ = {
      .user_data = op.request.user_data, .found = true, .info = info, .cost = op.done.cost};
  CopyValueBytes(op.request.out.data(), value,
                 std::min<size_t>(op.request.out.size(), info.value_bytes));
  op.done.cost = {};
  op.phase = Op::Phase::kFree;
  free_.Push(&op);
}

}  // namespace gannet
