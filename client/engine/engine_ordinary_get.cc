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
#include "common/layout/item_proof.h"

namespace gannet {

// False: nothing that this lane may READ.
inline bool Engine::ReadItem(Server& server, Op& op, uint32_t i, Slot slot, Op::Phase phase) {
  const uint32_t bytes = static_cast<uint32_t>(slot.read_bytes());
  const IndexView& view = server.session->view();
  if (bytes - 1 >= OpBuffers::kSmallItemBytes) return false;  // none, or too many
  if (slot.offset() + bytes > view.region_bytes) return false;
  op.slot = slot;
  op.item_bytes = static_cast<uint16_t>(bytes);
  op.phase = phase;
  ++op.busy.in_flight;
  ++op.done.cost.reads;
  op.done.cost.read_bytes += bytes;
  server.session->QueueRead({server.buffers[i].item, slot.offset(), i, bytes, server.buffers_lkey});
  return true;
}

inline void Engine::ReadWindow(Server& server, Op& op, uint32_t i) {
  op.phase = Op::Phase::kReadingWindow;
  op.posted_ns = now_ns_;
  ++op.busy.in_flight;
  ++op.done.cost.reads;
  op.done.cost.read_bytes += kWindowBytes;
  const IndexGeometry& index = server.session->view().index;
  server.session->QueueRead({server.buffers[i].window[0],
                             index.BucketOffset(op.hash.Home(index.homes)), i, kWindowBytes,
                             server.buffers_lkey});
}

[[gnu::always_inline]] inline void Engine::StartOrdinaryGet(Server& server, Op& op, uint32_t i) {
  const Slot cached = server.cache.Find(op.hash);
  if (ReadItem(server, op, i, cached, Op::Phase::kReadingCached)) [[likely]]
    return;
  if (!cached.empty()) return StartLookup(i, cached);
  if (op.request.share_window) [[unlikely]]
    return ShareWindow(server, i);
  ReadWindow(server, op, i);
}

void Engine::StartGet(Server& server, uint32_t i) { StartOrdinaryGet(server, ops_[i], i); }

void Engine::StartFresh() {
  const int64_t now_ns = now_ns_;
  int64_t earliest_ns = earliest_deadline_ns_;
  for (const uint32_t i : fresh_.all()) {
    Op& op = ops_[i];
    op.deadline_ns = now_ns + op.request.timeout_ns;
    earliest_ns = std::min(earliest_ns, op.deadline_ns);
    Server& server = ServerOf(op);
    if (op.request.type == OpType::kGet && server.session->ready()) [[likely]] {
      StartOrdinaryGet(server, op, i);
    } else {
      Start(i);
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
  if (signaled && last.kind != InFlightWork::Kind::kMessage) ++ops_[last.op].done.cost.completions;
  for (const InFlightWork::Work& work : works) {
    if (work.kind == InFlightWork::Kind::kRead) [[likely]] {
      OnReadDone(server, work.op);
    } else if (work.kind == InFlightWork::Kind::kCompareAndSwap) {
      --ops_[work.op].busy.in_flight;
      OnCompareAndSwapDone(work.op);
      FreeIfQuiet(work.op);
    }
  }
}

inline void Engine::OnReadDone(Server& server, uint32_t i) {
  Op& op = ops_[i];
  --op.busy.in_flight;
  if (op.phase == Op::Phase::kReadingCached || op.phase == Op::Phase::kReadingItem) [[likely]] {
    return OnItem(server, op, i);
  }
  if (op.phase == Op::Phase::kReadingWindow) return OnWindow(server, op, i);
  OnLookupRead(i);
}

inline void Engine::OnWindow(Server& server, Op& op, uint32_t i) {
  // The buffer is aligned and holds implicit-lifetime Buckets that the NIC filled in.
  const auto* window = reinterpret_cast<const Bucket*>(server.buffers[i].window[0]);
  const uint32_t candidates = MatchingSlots(window, op.hash.Tag());
  if (candidates != 0) [[likely]] {
    const Slot slot = SlotOfWindow(window, static_cast<uint32_t>(std::countr_zero(candidates)));
    if (ReadItem(server, op, i, slot, Op::Phase::kReadingItem)) [[likely]]
      return;
  }
  GoOnAsLookup(i);
}

void Engine::OnSharedWindow(uint32_t i) { OnWindow(ServerOf(ops_[i]), ops_[i], i); }

inline void Engine::OnItem(Server& server, Op& op, uint32_t i) {
  ItemView item;
  const std::span<const std::byte> copy(server.buffers[i].item, op.item_bytes);
  const IndexView& view = server.session->view();
  const ItemPlace place = {view.incarnation, view.hash_seed, op.slot.offset()};
  if (!IsItemOf(copy, place, op.request.key, op.hash, &item) || PastExpiry(item.header))
      [[unlikely]]
    return GoOnAsLookup(i);
  OnFound(op, op.slot, op.phase == Op::Phase::kReadingCached);
  if (report_ == report_end_ || !op.busy.quiet()) [[unlikely]]
    return FinishHit(i, InfoOf(item.header), item.value);
  Report(op, i, item);
}

// Tells the caller of Poll at once, and frees the slot, which nothing is busy with.
inline void Engine::Report(Op& op, uint32_t i, const ItemView& item) {
  *report_++ = {.user_data = op.request.user_data,
                .found = true,
                .info = InfoOf(item.header),
                .cost = op.done.cost};
  CopyValueBytes(op.request.out.data(), item.value.data(),
                 std::min(op.request.out.size(), item.value.size()));
  op.done.cost = {};
  op.phase = Op::Phase::kFree;
  --alive_;
  free_.Push(i);
}

}  // namespace gannet
