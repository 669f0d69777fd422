#include "client/engine/latency_sample.h"

#include <algorithm>
#include <limits>

#include "common/base/data_path_checks.h"

namespace gannet {
namespace {

LatencyKind LatencyKindOf(OpType type) {
  if (IsWrite(type)) return LatencyKind::kWrite;
  const bool gets = type == OpType::kGet || type == OpType::kGetInto;
  return gets ? LatencyKind::kGet : LatencyKind::kOther;
}

}  // namespace

void LatencySample::Begin(const Op& op, int64_t now_ns) {
  op_ = &op;
  kind_ = LatencyKindOf(op.request.type);
  server_ = op.server;
  began_ns_ = now_ns;
  next_ns_ = std::numeric_limits<int64_t>::max();
}

void LatencySample::EndIfOver(const ClientClock& clock) {
  GANNET_CHECK_DATA_PATH(running(), "no operation was taken");
  if (op_->phase != Op::Phase::kFree && !op_->over()) return;
  const int64_t now_ns = clock.MonotonicNs();
  server_->session->news().usage().Took(kind_, std::max<int64_t>(now_ns - began_ns_, 0));
  op_ = nullptr;
  next_ns_ = now_ns + kPeriodNs;
}

}  // namespace gannet
