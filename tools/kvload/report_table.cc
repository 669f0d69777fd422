#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "tools/build_stamp/build_stamp.h"
#include "tools/kvload/report.h"

namespace gannet::kvload {
namespace {

void AppendPhase(std::string_view name, const PhaseResult& result, std::string& out) {
  absl::StrAppendFormat(&out, "%-9s %d operations in %.2f s: %.0f operations/s\n",
                        std::string(name), result.metrics.answered(), result.seconds,
                        PerSecond(result));
  if (result.dead_seconds > 0) {
    absl::StrAppendFormat(&out, "          without the %.2f s when no server answered\n",
                          result.dead_seconds);
  }
}

void AppendOps(std::string_view prefix, const Metrics& metrics, std::string& out) {
  for (size_t i = 0; i < kOpKinds; ++i) {
    const OpSums& op = metrics.ops[i];
    if (op.latency_ns.count() + op.errors == 0) continue;
    const auto us = [&op](double fraction) {
      return static_cast<double>(op.latency_ns.Percentile(fraction)) / 1000;
    };
    absl::StrAppendFormat(&out, "%-14s %10d %9d %7d %9.2f %9.2f %9.2f %10.2f\n",
                          absl::StrCat(std::string(prefix), std::string(kOpNames[i])),
                          op.latency_ns.count(), op.not_found, op.errors.value(), us(0.5), us(0.99),
                          us(0.999), static_cast<double>(op.latency_ns.max()) / 1000);
  }
}

// By which rails the work went.
void AppendRails(const Metrics& metrics, std::string& out) {
  uint64_t all = 0;
  for (const auto& [address, works] : metrics.rail_works) all += works;
  if (all == 0) return;
  const char* before = "rails     ";
  for (const auto& [address, works] : metrics.rail_works) {
    absl::StrAppendFormat(&out, "%s%s %.1f %%", std::exchange(before, ", "), address,
                          100.0 * static_cast<double>(works) / static_cast<double>(all));
  }
  absl::StrAppend(&out, " of the works since the last connect\n");
}

// Appends the costs on both sides.
void AppendCosts(const PhaseResult& result, std::string& out) {
  absl::StrAppendFormat(&out, "server    %d RPCs, %d us of CPU",
                        result.after.rpcs - result.before.rpcs,
                        result.after.cpu_us - result.before.cpu_us);
  if (result.after.disk_answers > result.before.disk_answers) {
    absl::StrAppendFormat(&out, ", %d values from disk",
                          result.after.disk_answers - result.before.disk_answers);
  }
  if (result.after.slots_total > 0) {
    absl::StrAppendFormat(&out, ", index %.1f %% full",
                          100.0 * static_cast<double>(result.after.slots_used) /
                              static_cast<double>(result.after.slots_total));
  }
  absl::StrAppendFormat(&out, "\nclient    %d us of CPU\n", result.client_cpu_us);
}

void AppendVerbs(std::string_view name, const VerbSums& sums, std::string& out) {
  if (sums.operations == 0) return;
  const auto per_op = [&sums](uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(sums.operations);
  };
  absl::StrAppendFormat(&out, "%-14s %10d %7.3f %10.1f %7.3f %7.3f %7.3f %12.3f\n",
                        std::string(name), sums.operations.value(), per_op(sums.reads),
                        per_op(sums.read_bytes), per_op(sums.sends), per_op(sums.cas),
                        per_op(sums.posts), per_op(sums.completions));
}

void AppendVerbsOfAll(const Metrics& metrics, std::string& out) {
  absl::StrAppendFormat(&out, "\n%-14s %10s %7s %10s %7s %7s %7s %12s\n", "verbs per op", "count",
                        "READs", "READ bytes", "SENDs", "CAS", "posts", "completions");
  for (size_t i = 0; i < kOpKinds; ++i) AppendVerbs(kOpNames[i], metrics.ops[i].verbs, out);
  AppendVerbs("get_near", metrics.get_near, out);
  AppendVerbs("get_warm", metrics.get_warm, out);
  AppendVerbs("get_cold", metrics.get_cold, out);
  AppendVerbs("get_miss", metrics.get_miss, out);
}

void AppendWrong(const Metrics& metrics, std::string& out) {
  for (const std::string& wrong : metrics.first_wrong) {
    absl::StrAppend(&out, "WRONG VALUE: ", wrong, "\n");
  }
  for (const auto& [code, count] : metrics.errors_by_code) {
    absl::StrAppendFormat(&out, "error: %s, %d times\n", absl::StatusCodeToString(code), count);
  }
  if (metrics.fail_overs > 0) {
    absl::StrAppendFormat(&out, "fail-overs to another primary: %d\n", metrics.fail_overs);
  }
  if (metrics.gave_up) absl::StrAppend(&out, "gave up: too many errors in a row\n");
}

void AppendRateMissed(const Report& report, std::string& out) {
  const double reached = RateReached(report);
  if (reached >= kRateReachedMin) return;
  absl::StrAppendFormat(
      &out,
      "RATE MISSED: --rate=%s asked for %.0f operations/s, and %.0f were answered, %.1f %%. "
      "Latencies count\n          from when an operation was due. Use more --threads or a larger "
      "--depth, or ask for less\n",
      report.options.rate_text, PerSecond(report.measured) / reached, PerSecond(report.measured),
      100 * reached);
}

void AppendStall(const Report& report, std::string& out) {
  if (!HidesStall(report)) return;
  const PhaseResult& measured = report.measured;
  const double seconds = static_cast<double>(measured.metrics.longest_stall_ns) / kNsPerSecond;
  absl::StrAppendFormat(
      &out,
      "STALL HIDDEN: for %.0f ms, %.1f %% of the run, a thread got no answer. A closed loop begins "
      "nothing\n          meanwhile, so p99 does not show it. With --rate=%.0f latencies count "
      "from "
      "when operations are due\n",
      1000 * seconds, 100 * seconds / measured.seconds, 0.8 * PerSecond(measured));
}

}  // namespace

bool HidesStall(const Report& report) {
  constexpr int64_t kStallNsMin = 20 * kNsPerMs;  // shorter ones are any busy machine's
  constexpr double kShareMin = 0.01;              // of the time, so that a true p99 would show it
  const PhaseResult& measured = report.measured;
  const int64_t stall_ns = measured.metrics.longest_stall_ns;
  return report.options.rate.closed_loop() && stall_ns >= kStallNsMin &&
         static_cast<double>(stall_ns) >= kShareMin * measured.seconds * kNsPerSecond &&
         measured.metrics.Latencies().Percentile(0.99) < static_cast<uint64_t>(stall_ns) / 2;
}

double RateReached(const Report& report) {
  const Rate& rate = report.options.rate;
  const int64_t ns = static_cast<int64_t>(report.measured.seconds * kNsPerSecond);
  if (rate.closed_loop() || rate.DueUntil(ns) < 1) return 1;
  return static_cast<double>(report.measured.metrics.answered()) / rate.DueUntil(ns);
}

double PerSecond(const PhaseResult& result) {
  return result.seconds > 0 ? static_cast<double>(result.metrics.answered()) / result.seconds : 0;
}

uint64_t WrongValues(const Report& report) {
  return report.measured.metrics.wrong_values +
         (report.load ? report.load->metrics.wrong_values : 0);
}

uint64_t Errors(const Report& report) {
  return report.measured.metrics.errors() + (report.load ? report.load->metrics.errors() : 0);
}

std::string ToTable(const Report& report) {
  const LoadOptions& options = report.options;
  const PhaseResult& measured = report.measured;
  std::string out;
  absl::StrAppendFormat(&out, "workload  %s: %s%s%s on %s (%s), commit %s, %s\n",
                        NameOf(options.backend), report.workload,
                        report.distribution.empty() ? "" : ", ", report.distribution, report.device,
                        report.kind, BuildCommit(), BuildKind());
  absl::StrAppendFormat(&out, "settings  %d threads, depth %d, seed %d", options.threads,
                        options.depth, options.seed);
  if (report.workload != kTraceWorkload) {
    absl::StrAppendFormat(&out, ", keys %d B, values %s", options.sizes.key_bytes,
                          options.value_sizes.empty()
                              ? absl::StrCat(options.sizes.value_bytes, " B")
                              : options.value_sizes);
  }
  absl::StrAppend(&out, options.rate_text.empty() ? "" : absl::StrCat(", rate ", options.rate_text),
                  "\n");
  if (report.load) AppendPhase("load", *report.load, out);
  AppendPhase("measured", measured, out);
  AppendRateMissed(report, out);
  AppendStall(report, out);
  if (const std::optional<double> hits = measured.metrics.HitRatio()) {
    absl::StrAppendFormat(&out, "hits      %.4f of the gets\n", *hits);
  }
  AppendRails(measured.metrics, out);
  AppendCosts(measured, out);
  absl::StrAppendFormat(&out, "\n%-14s %10s %9s %7s %9s %9s %9s %10s\n", "latency", "count",
                        "not found", "errors", "p50 us", "p99 us", "p99.9 us", "max us");
  if (report.load) AppendOps("load ", report.load->metrics, out);
  AppendOps("", measured.metrics, out);
  if (options.backend == BackendKind::kGannet) AppendVerbsOfAll(measured.metrics, out);
  if (report.load) AppendWrong(report.load->metrics, out);
  AppendWrong(measured.metrics, out);
  if (!measured.cut_short.empty()) {
    absl::StrAppend(&out, "CUT SHORT: ", measured.cut_short, "; the figures end there\n");
  }
  return out;
}

}  // namespace gannet::kvload
