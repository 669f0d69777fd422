// GETs that are begun together may share READs (OpRequest::share_window). If their home windows are
// the same, overlap or touch, one READ brings them all, into the buffers of one of them, the
// reader. The others, its sharers, get copies. The READ is posted after all of them were begun, and
// has both buckets of each window, so it is as good for a miss as a READ of its own. From the
// window on each is an ordinary GET.

#include <cstring>
#include <utility>

#include "client/engine/ordinary_gets_inline.h"

namespace gannet {
namespace {

uint64_t WindowOffset(const IndexView& view, const Op& op) {
  return view.index.BucketOffset(op.hash.Home(view.index.homes));
}

}  // namespace

// Leaves the window to PostSharedWindows, which is called after all that begin together.
void OrdinaryGets::ShareWindow(Op& op) {
  op.phase.FastGoTo(Op::Phase::kReadingWindow);
  op.posted_ns = ops_table_.now_ns();
  ++op.busy.in_flight;
  shared_windows_.Add({op.request.server, op.number, WindowOffset(op.session().terms().view, op)});
}

void OrdinaryGets::PostSharedWindows() {
  shared_windows_.Take([this](std::span<const SharedWindows::Wanted> wanted, uint32_t bytes) {
    Op& reader = ops_table_[wanted[0].op];
    if (wanted.size() > 1) reader.phase.FastGoTo(Op::Phase::kReadingWindows);
    for (const SharedWindows::Wanted& sharer : wanted.subspan(1)) {
      Op& op = ops_table_[sharer.op];
      op.window.at = static_cast<uint32_t>(sharer.offset - wanted[0].offset);
      op.window.next_sharer = std::exchange(reader.window.first_sharer, sharer.op);
    }
    ++reader.done.cost.reads;
    reader.done.cost.read_bytes += bytes;
    reader.session().sends().QueueRead(
        {reader.buffers->window[0], wanted[0].offset, reader.number, bytes, {}});
  });
}

// Call it before the reader goes on. Its buffers still hold all the windows, even if it is over.
void OrdinaryGets::FeedSharers(Op& reader) {
  const std::byte* read = reader.buffers->window[0];
  uint32_t next = std::exchange(reader.window.first_sharer, kInvalidOp);
  while (next != kInvalidOp) {
    Op& op = ops_table_[next];
    next = std::exchange(op.window.next_sharer, kInvalidOp);
    std::memcpy(op.buffers->window[0], read + op.window.at, kWindowBytes);
    --op.busy.in_flight;
    if (op.over()) {
      ops_table_.FreeIfQuiet(op);
    } else if (op.phase == Op::Phase::kOutOfDate) {
      lookups_.OnRead(op);
    } else {
      OnWindow(*op.server, op);
    }
  }
}

}  // namespace gannet
