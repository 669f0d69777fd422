#include <nlohmann/json.hpp>
#include <optional>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "tools/build_stamp/build_stamp.h"
#include "tools/kvload/report.h"

namespace gannet::kvload {
namespace {

using Json = nlohmann::ordered_json;

Json OpJson(const OpSums& op) {
  const auto us = [&op](double fraction) {
    return static_cast<double>(op.latency_ns.Percentile(fraction)) / 1000;
  };
  return {{"count", op.latency_ns.count()},
          {"not_found", op.not_found},
          {"errors", op.errors.value()},
          {"p50_us", us(0.5)},
          {"p99_us", us(0.99)},
          {"p999_us", us(0.999)},
          {"max_us", static_cast<double>(op.latency_ns.max()) / 1000}};
}

Json VerbsJson(const VerbSums& sums) {
  const auto per_op = [&sums](uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(sums.operations);
  };
  return {{"reads_per_op", per_op(sums.reads)},  {"read_bytes_per_op", per_op(sums.read_bytes)},
          {"sends_per_op", per_op(sums.sends)},  {"cas_per_op", per_op(sums.cas)},
          {"posts_per_op", per_op(sums.posts)},  {"completions_per_op", per_op(sums.completions)},
          {"by_rpc_per_op", per_op(sums.by_rpc)}};
}

Json OpsJson(const Metrics& metrics) {
  Json ops = Json::object();
  for (size_t i = 0; i < kOpKinds; ++i) {
    const OpSums& op = metrics.ops[i];
    if (op.latency_ns.count() + op.errors > 0) ops[std::string(kOpNames[i])] = OpJson(op);
  }
  return ops;
}

Json VerbsOfAll(const LoadOptions& options, const Metrics& metrics) {
  Json verbs = Json::object();
  if (options.backend != BackendKind::kGannet) return verbs;
  const auto add = [&verbs](std::string_view name, const VerbSums& sums) {
    if (sums.operations > 0) verbs[std::string(name)] = VerbsJson(sums);
  };
  for (size_t i = 0; i < kOpKinds; ++i) add(kOpNames[i], metrics.ops[i].verbs);
  add("get_near", metrics.get_near);
  add("get_warm", metrics.get_warm);
  add("get_cold", metrics.get_cold);
  add("get_miss", metrics.get_miss);
  return verbs;
}

// Returns null unless the run was all GETs: only then is the server's CPU time theirs.
Json ServerCpuPerGet(const PhaseResult& result) {
  const uint64_t gets = result.metrics.of(OpKind::kGet).latency_ns.count();
  if (gets == 0 || gets != result.metrics.answered() || result.metrics.errors() > 0) return nullptr;
  return static_cast<double>(result.after.cpu_us - result.before.cpu_us) /
         static_cast<double>(gets);
}

Json IndexFill(const ServerTotals& totals) {
  if (totals.slots_total == 0) return nullptr;
  return static_cast<double>(totals.slots_used) / static_cast<double>(totals.slots_total);
}

Json ErrorsJson(const Metrics& metrics) {
  Json errors = Json::object();
  for (const auto& [code, count] : metrics.errors_by_code) {
    errors[absl::StatusCodeToString(code)] = count;
  }
  return errors;
}

Json OptionsJson(const Report& report) {
  const LoadOptions& options = report.options;
  // Returns null for a trace, because a trace has its own records and sizes.
  const auto unless_trace = [&report](uint64_t value) {
    return report.workload == kTraceWorkload ? Json(nullptr) : Json(value);
  };
  return {{"schema", kReportSchema},
          {"commit", BuildCommit()},
          {"build", BuildKind()},
          {"backend", NameOf(options.backend)},
          {"workload", report.workload},
          {"distribution", report.distribution.empty() ? Json(nullptr) : Json(report.distribution)},
          {"seed", options.seed},
          {"threads", options.threads},
          {"depth", options.depth},
          {"connections", options.connections},
          {"records", unless_trace(options.records)},
          {"key_size", unless_trace(options.sizes.key_bytes)},
          {"value_size",
           options.value_sizes.empty() ? unless_trace(options.sizes.value_bytes) : Json(nullptr)},
          {"value_sizes", options.value_sizes.empty() ? Json(nullptr) : Json(options.value_sizes)},
          {"location_cache", options.backend == BackendKind::kGannet
                                 ? Json(options.location_cache_bytes)
                                 : Json(nullptr)},
          {"near_cache", options.backend == BackendKind::kGannet ? Json(options.near_cache_bytes)
                                                                 : Json(nullptr)},
          {"stride", options.stride},
          {"ttl_ms", options.ttl.count()},
          {"warm_up", options.warm_up},
          {"warmup_seconds", options.warmup_seconds},
          {"target_ops", options.rate.closed_loop() ? 0 : options.rate.At(options.rate.LengthNs())},
          {"rate", options.rate_text.empty() ? Json(nullptr) : Json(options.rate_text)},
          {"verify", options.verify},
          {"device", report.device},
          {"kind", report.kind}};
}

}  // namespace

std::string ToJson(const Report& report) {
  const PhaseResult& measured = report.measured;
  Json json = OptionsJson(report);
  json["cut_short"] = measured.cut_short.empty() ? Json(nullptr) : Json(measured.cut_short);
  json["seconds"] = measured.seconds;
  json["dead_seconds"] = measured.dead_seconds;
  json["operations"] = measured.metrics.answered();
  json["ops_per_second"] = PerSecond(measured);
  json["rate_reached"] =
      report.options.rate.closed_loop() ? Json(nullptr) : Json(RateReached(report));
  const std::optional<double> hits = measured.metrics.HitRatio();
  json["hit_ratio"] = hits ? Json(*hits) : Json(nullptr);
  json["longest_stall_ms"] =
      static_cast<double>(measured.metrics.longest_stall_ns) / static_cast<double>(kNsPerMs);
  json["index_fill"] = IndexFill(measured.after);
  json["server_rpcs"] = measured.after.rpcs - measured.before.rpcs;
  json["server_disk_answers"] = measured.after.disk_answers - measured.before.disk_answers;
  json["server_cpu_us"] = measured.after.cpu_us - measured.before.cpu_us;
  if (report.options.backend == BackendKind::kGannet) {
    json["server_verbs"] = {
        {"reply_posts", measured.after.reply_posts - measured.before.reply_posts},
        {"receive_posts", measured.after.receive_posts - measured.before.receive_posts},
        {"send_completions", measured.after.send_completions - measured.before.send_completions}};
  }
  json["client_cpu_us"] = measured.client_cpu_us;
  json["server_cpu_us_per_get"] = ServerCpuPerGet(measured);
  json["wrong_values"] = WrongValues(report);
  json["errors"] = ErrorsJson(measured.metrics);
  json["fail_overs"] = measured.metrics.fail_overs;
  json["near_cache_reads"] = measured.metrics.near_cache_reads;
  json["rail_works"] = measured.metrics.rail_works;
  json["ops"] = OpsJson(measured.metrics);
  json["verbs"] = VerbsOfAll(report.options, measured.metrics);
  if (measured.spread.pages > 0) {
    json["spread"] = {{"span_bytes", measured.spread.span_bytes}, {"pages", measured.spread.pages}};
  }
  if (report.load) {
    json["load"] = {{"seconds", report.load->seconds},
                    {"operations", report.load->metrics.answered()},
                    {"ops_per_second", PerSecond(*report.load)},
                    {"ops", OpsJson(report.load->metrics)},
                    {"verbs", VerbsOfAll(report.options, report.load->metrics)}};
  }
  return json.dump(2) + "\n";
}

}  // namespace gannet::kvload
