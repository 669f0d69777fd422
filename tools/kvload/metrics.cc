#include "tools/kvload/metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gannet::kvload {

void VerbSums::AddCost(const OpCost& cost) {
  reads += cost.reads;
  read_bytes += cost.read_bytes;
  sends += cost.sends;
  cas += cost.cas;
  posts += cost.posts;
  completions += cost.completions;
  by_rpc += cost.by_rpc ? 1 : 0;
}

void VerbSums::Merge(const VerbSums& other) {
  operations += other.operations;
  reads += other.reads;
  read_bytes += other.read_bytes;
  sends += other.sends;
  cas += other.cas;
  posts += other.posts;
  completions += other.completions;
  by_rpc += other.by_rpc;
}

void Metrics::AddWrong(std::string_view key, std::string_view what) {
  ++wrong_values;
  if (first_wrong.size() < kWrongDescribedMax) {
    first_wrong.push_back(absl::StrCat("key '", std::string(key), "': ", std::string(what)));
  }
}

void Metrics::Merge(const Metrics& other) {
  for (size_t i = 0; i < kOpKinds; ++i) {
    ops[i].latency_ns.Merge(other.ops[i].latency_ns);
    ops[i].not_found += other.ops[i].not_found;
    ops[i].errors += other.ops[i].errors;
    ops[i].verbs.Merge(other.ops[i].verbs);
  }
  get_near.Merge(other.get_near);
  get_warm.Merge(other.get_warm);
  get_cold.Merge(other.get_cold);
  get_miss.Merge(other.get_miss);
  wrong_values += other.wrong_values;
  for (const std::string& wrong : other.first_wrong) {
    if (first_wrong.size() < kWrongDescribedMax) first_wrong.push_back(wrong);
  }
  for (const auto& [code, count] : other.errors_by_code) errors_by_code[code] += count;
  gave_up = gave_up || other.gave_up;
  if (lost.empty()) lost = other.lost;
  longest_stall_ns = std::max(longest_stall_ns, other.longest_stall_ns);
  dead_ns = std::max(dead_ns, other.dead_ns);
  fail_overs = std::max(fail_overs, other.fail_overs);
  near_cache_reads += other.near_cache_reads;
  for (const auto& [address, works] : other.rail_works) rail_works[address] += works;
}

std::optional<double> Metrics::HitRatio() const {
  uint64_t gets = 0;
  uint64_t misses = 0;
  for (const OpKind kind : {OpKind::kGet, OpKind::kGetAndTouch}) {
    gets += of(kind).latency_ns.count();
    misses += of(kind).not_found;
  }
  if (gets == 0) return std::nullopt;
  return 1 - static_cast<double>(misses) / static_cast<double>(gets);
}

uint64_t Metrics::answered() const {
  uint64_t sum = 0;
  for (const OpSums& op : ops) sum += op.latency_ns.count();
  return sum;
}

Histogram Metrics::Latencies() const {
  Histogram all;
  for (const OpSums& op : ops) all.Merge(op.latency_ns);
  return all;
}

uint64_t Metrics::errors() const {
  uint64_t sum = 0;
  for (const OpSums& op : ops) sum += op.errors;
  return sum;
}

}  // namespace gannet::kvload
