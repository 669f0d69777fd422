// The sample of latencies that clients tell their servers. Apart from engine.cc, so that it changes
// nothing of what the compiler inlines there.

#include <algorithm>

#include "client/engine/engine.h"

namespace gannet {
namespace {

LatencyKind LatencyKindOf(OpType type) {
  if (IsWrite(type)) return LatencyKind::kWrite;
  const bool gets = type == OpType::kGet || type == OpType::kGetInto;
  return gets ? LatencyKind::kGet : LatencyKind::kOther;
}

}  // namespace

// Takes the first operation that this Poll starts into the sample of latencies, so that none of the
// others costs a look at the clock.
void Engine::BeginSample() {
  if (fresh_.empty()) return;
  const Op& op = *fresh_.all().front();
  sample_ = {op.number, LatencyKindOf(op.request.type), op.server, now_ns_};
  next_sample_ns_ = INT64_MAX;
}

// If that operation is over, tells how long it took: from the Poll that started it to the end of
// the Poll that ended it.
void Engine::EndSample() {
  const Op& op = slots_[sample_.op];
  if (op.phase != Op::Phase::kFree && !op.over()) return;
  const int64_t now_ns = clock_->MonotonicNs();
  sample_.server->session->usage().Took(sample_.kind,
                                        std::max<int64_t>(now_ns - sample_.began_ns, 0));
  sample_.op = kInvalidOp;
  next_sample_ns_ = now_ns + kSampleNs;
}

}  // namespace gannet
