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

void Engine::StartFresh() {
  for (const uint32_t i : fresh_.all()) {
    Op& op = ops_[i];
    op.deadline_ns = now_ns_ + op.request.timeout_ns;
    earliest_deadline_ns_ = std::min(earliest_deadline_ns_, op.deadline_ns);
    Server& server = ServerOf(op);
    if (op.request.type == OpType::kGet && server.session->ready()) [[likely]] {
      StartGet(server, i);
    } else {
      Start(i);
    }
  }
  fresh_.Clear();
  if (!shared_windows_.empty()) [[unlikely]]
    ReadSharedWindows();
}

// False: nothing that this lane may READ.
inline bool Engine::ReadItem(Server& server, uint32_t i, Slot slot, Op::Phase phase) {
  const uint64_t bytes = slot.read_bytes();
  const IndexView& view = server.session->view();
  if (bytes > OpBuffers::kSmallItemBytes || !view.Contains(slot.offset(), bytes)) return false;
  Op& op = ops_[i];
  op.slot = slot;
  op.phase = phase;
  ++op.busy.in_flight;
  ++op.done.cost.reads;
  op.done.cost.read_bytes += static_cast<uint32_t>(bytes);
  server.session->QueueRead({server.buffers[i].item, slot.offset(), i, static_cast<uint32_t>(bytes),
                             server.buffers_lkey});
  return true;
}

inline void Engine::ReadWindow(Server& server, uint32_t i) {
  Op& op = ops_[i];
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

void Engine::StartGet(Server& server, uint32_t i) {
  const Op& op = ops_[i];
  const Slot cached = server.cache.Find(op.hash);
  if (ReadItem(server, i, cached, Op::Phase::kReadingCached)) return;
  if (!cached.empty()) return StartLookup(i, cached);
  if (op.request.share_window) [[unlikely]]
    return ShareWindow(server, i);
  ReadWindow(server, i);
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
    return OnItem(server, i);
  }
  if (op.phase == Op::Phase::kReadingWindow) return OnWindow(server, i);
  OnLookupRead(i);
}

inline void Engine::OnWindow(Server& server, uint32_t i) {
  // The buffer is aligned and holds implicit-lifetime Buckets that the NIC filled in.
  const auto* window = reinterpret_cast<const Bucket*>(server.buffers[i].window[0]);
  const uint32_t candidates = MatchingSlots(window, ops_[i].hash.Tag());
  if (candidates != 0) [[likely]] {
    const Slot slot = SlotOfWindow(window, static_cast<uint32_t>(std::countr_zero(candidates)));
    if (ReadItem(server, i, slot, Op::Phase::kReadingItem)) [[likely]]
      return;
  }
  GoOnAsLookup(i);
}

void Engine::OnSharedWindow(uint32_t i) { OnWindow(ServerOf(ops_[i]), i); }

inline void Engine::OnItem(Server& server, uint32_t i) {
  Op& op = ops_[i];
  ItemView item;
  const std::span copy(server.buffers[i].item, op.slot.read_bytes());
  const IndexView& view = server.session->view();
  const ItemPlace place = {view.incarnation, view.hash_seed, op.slot.offset()};
  if (!IsItemOf(copy, place, op.request.key, op.hash, &item) || PastExpiry(item.header))
      [[unlikely]]
    return GoOnAsLookup(i);
  OnFound(op, op.slot, op.phase == Op::Phase::kReadingCached);
  if (report_ == report_end_ || op.busy != Op::Busy{}) return FinishHit(i, item);
  Report(i, item);
}

// Tells the caller of Poll at once, and frees the slot, which nothing is busy with.
inline void Engine::Report(uint32_t i, const ItemView& item) {
  Op& op = ops_[i];
  *report_++ = {.user_data = op.request.user_data,
                .found = true,
                .info = InfoOf(item.header),
                .cost = op.done.cost};
  CopyBytes(op.request.out.data(), item.value.data(),
            std::min(op.request.out.size(), item.value.size()));
  op.done.cost = {};
  op.phase = Op::Phase::kFree;
  --alive_;
  free_.Push(i);
}

}  // namespace gannet
