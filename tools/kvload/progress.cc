#include "tools/kvload/progress.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gannet::kvload {
namespace {

double Microseconds(const Interval& interval, double fraction) {
  return static_cast<double>(interval.latency_ns.Percentile(fraction)) / 1000;
}

// Returns the seconds until the phase ends by its operations or by its time, whichever is sooner.
double SecondsLeft(const ProgressState& state, const Interval& interval) {
  double left = std::numeric_limits<double>::infinity();
  if (state.seconds > 0) left = std::max(0.0, state.seconds - interval.ended_s);
  if (state.finished > 0 && state.finished <= state.operations) {
    const auto to_do = static_cast<double>(state.operations - state.finished);
    left = std::min(left, to_do * interval.ended_s / static_cast<double>(state.finished));
  }
  return left;
}

std::string TimeText(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole < 60) return absl::StrCat(whole, " s");
  if (whole < 3600) return absl::StrFormat("%d min %02d s", whole / 60, whole % 60);
  return absl::StrFormat("%d h %02d min", whole / 3600, whole / 60 % 60);
}

}  // namespace

double Interval::PerSecond() const {
  return ended_s > began_s ? static_cast<double>(operations) / (ended_s - began_s) : 0;
}

double Interval::ReadsPerGet() const {
  return gets == 0 ? 0 : static_cast<double>(get_reads) / static_cast<double>(gets);
}

Interval ProgressMeter::Look(double elapsed_s) {
  Interval total;
  total.ended_s = elapsed_s;
  for (const Metrics* metrics : threads_) {
    for (const OpSums& op : metrics->ops) {
      total.latency_ns.Merge(op.latency_ns);
      total.errors += op.errors;
    }
    total.gets += metrics->of(OpKind::kGet).verbs.operations;
    total.get_reads += metrics->of(OpKind::kGet).verbs.reads;
  }
  Interval since;
  since.began_s = total_.ended_s;
  since.ended_s = total.ended_s;
  since.latency_ns = total.latency_ns.Since(total_.latency_ns);
  since.operations = since.latency_ns.count();
  since.errors = total.errors - total_.errors;
  since.gets = total.gets - total_.gets;
  since.get_reads = total.get_reads - total_.get_reads;
  total_ = std::move(total);
  return since;
}

std::string ProgressLine(const ProgressState& state, const Interval& interval) {
  std::string line = absl::StrCat(std::string(state.phase), ": ");
  if (state.seconds > 0) {
    absl::StrAppendFormat(&line, "%.0f s of %g s, ", interval.ended_s, state.seconds);
  } else {
    absl::StrAppendFormat(&line, "%d %% of %d, ",
                          state.operations == 0 ? 100 : state.finished * 100 / state.operations,
                          state.operations);
  }
  absl::StrAppendFormat(&line, "%.0f/s, p99 %.1f us, %d errors", interval.PerSecond(),
                        Microseconds(interval, 0.99), interval.errors);
  if (interval.get_reads > 0) {
    absl::StrAppendFormat(&line, ", %.2f READs/GET", interval.ReadsPerGet());
  }
  const double left = SecondsLeft(state, interval);
  if (std::isfinite(left)) absl::StrAppend(&line, ", ETA ", TimeText(left));
  return line;
}

std::string CsvHeader() {
  return "run,phase,seconds,operations,ops_per_second,errors,p50_us,p99_us,p999_us,max_us,"
         "reads_per_get\n";
}

std::string CsvRow(std::string_view run, std::string_view phase, const Interval& interval) {
  return absl::StrFormat(
      "%s,%s,%.3f,%d,%.1f,%d,%.3f,%.3f,%.3f,%.3f,%.4f\n", run, phase, interval.ended_s,
      interval.operations, interval.PerSecond(), interval.errors, Microseconds(interval, 0.5),
      Microseconds(interval, 0.99), Microseconds(interval, 0.999),
      static_cast<double>(interval.latency_ns.max()) / 1000, interval.ReadsPerGet());
}

}  // namespace gannet::kvload
