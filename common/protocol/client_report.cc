#include "common/protocol/client_report.h"

#include <cstring>

namespace gannet {

std::optional<ClientReportView> ClientReportView::Decode(std::string_view bytes) {
  ClientReportView view{};
  if (bytes.size() < sizeof(view.counts) || bytes.size() > kClientReportBytesMax ||
      bytes.size() % sizeof(LatencyCount) != 0) {
    return std::nullopt;
  }
  std::memcpy(&view.counts, bytes.data(), sizeof(view.counts));
  const ClientCounts& counts = view.counts;
  if (std::max({counts.hits, counts.misses, counts.reads, counts.by_rpc}) > kClientCountMax) {
    return std::nullopt;
  }
  view.latencies = bytes.substr(sizeof(view.counts));
  bool valid = true;
  view.ForEachLatency([&valid](LatencyCount it) {
    valid &= it.count() > 0 && it.bucket() < LatencyBucket::kCount && it.kind() < kLatencyKinds;
  });
  if (!valid) return std::nullopt;
  return view;
}

LatencyCount ClientReportView::LatencyAt(size_t at) const {
  uint64_t word;
  std::memcpy(&word, latencies.data() + at, sizeof(word));
  return LatencyCount(word);
}

}  // namespace gannet
