// What GETs that are begun together share (OpRequest::share_window): those of their home windows
// that are the same, overlap or touch come with one READ, into the buffers of one of them, the
// reader; the others, its sharers, get copies. That READ is posted after all of them were begun,
// and has both buckets of each window, so it is as good for a miss as a READ of its own. From the
// window on each is an ordinary GET.

#include <cstring>
#include <utility>

#include "client/engine/engine.h"

namespace gannet {
namespace {

uint64_t WindowOffset(const IndexView& view, const Op& op) {
  return view.index.BucketOffset(op.hash.Home(view.index.homes));
}

}  // namespace

// Its window is READ by ReadSharedWindows, to be called when all that begin together are here.
void Engine::ShareWindow(Server& server, uint32_t i) {
  Op& op = ops_[i];
  op.phase = Op::Phase::kReadingWindow;
  op.posted_ns = now_ns_;
  ++op.busy.in_flight;
  shared_windows_.Add({op.request.server, i, WindowOffset(server.session->view(), op)});
}

void Engine::ReadSharedWindows() {
  shared_windows_.Take([this](std::span<const SharedWindows::Wanted> wanted, uint32_t bytes) {
    const uint32_t i = wanted[0].op;
    Op& reader = ops_[i];
    for (const SharedWindows::Wanted& sharer : wanted.subspan(1)) {
      reader.phase = Op::Phase::kReadingWindows;
      ops_[sharer.op].next_sharer = std::exchange(reader.first_sharer, sharer.op);
    }
    ++reader.done.cost.reads;
    reader.done.cost.read_bytes += bytes;
    SessionOf(reader).QueueRead({reader.buffers->window[0], wanted[0].offset, i, bytes, {}});
  });
}

// Before the reader goes on: its buffers, which may be over with, still hold all the windows.
void Engine::FeedSharers(uint32_t i) {
  const IndexView& view = SessionOf(ops_[i]).view();
  const std::byte* read = ops_[i].buffers->window[0];
  const uint64_t begin = WindowOffset(view, ops_[i]);
  uint32_t next = std::exchange(ops_[i].first_sharer, kNoOp);
  while (next != kNoOp) {
    const uint32_t sharer = next;
    Op& op = ops_[sharer];
    next = std::exchange(op.next_sharer, kNoOp);
    std::memcpy(op.buffers->window[0], read + (WindowOffset(view, op) - begin), kWindowBytes);
    --op.busy.in_flight;
    if (op.over()) {
      FreeIfQuiet(sharer);
    } else {
      OnSharedWindow(op);
    }
  }
}

}  // namespace gannet
