#include "tools/kvload/sweep.h"

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace gannet::kvload {

std::string Sweep::NameOf(size_t i) const { return absl::StrCat(flag, "=", values[i]); }

absl::StatusOr<Sweep> ParseSweep(std::string_view text) {
  const auto refuse = [text](std::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--sweep=", std::string(text), ": ", std::string(why), ", as in --sweep=threads:1,2,4,8"));
  };
  const size_t colon = text.find(':');
  Sweep sweep{.flag = std::string(text.substr(0, colon)), .values = {}};
  if (sweep.flag != "threads" && sweep.flag != "depth" && sweep.flag != "value_size") {
    return refuse("begins with threads, depth or value_size");
  }
  if (colon == text.npos) return refuse("needs values");
  const std::vector<std::string> words = absl::StrSplit(std::string(text.substr(colon + 1)), ',');
  for (const std::string& word : words) {
    uint64_t value = 0;
    if (!absl::SimpleAtoi(word, &value) || value > UINT32_MAX) {
      return refuse(absl::StrCat("'", word, "' is no number"));
    }
    sweep.values.push_back(value);
  }
  if (sweep.values.size() > Sweep::kValuesMax) return refuse("has too many values");
  return sweep;
}

absl::Status Validate(const LoadOptions& options, const Sweep& sweep) {
  for (size_t i = 0; i < sweep.values.size(); ++i) {
    GANNET_RETURN_IF_ERROR(Validate(OptionsOfRun(options, sweep, i)));
  }
  return absl::OkStatus();
}

LoadOptions OptionsOfRun(const LoadOptions& options, const Sweep& sweep, size_t i) {
  LoadOptions run = options;
  const auto value = static_cast<uint32_t>(sweep.values[i]);
  if (sweep.flag == "threads") run.threads = value;
  if (sweep.flag == "depth") run.depth = value;
  if (sweep.flag == "value_size") {
    run.sizes.value_bytes = value;
  } else if (i > 0 && run.phase == Phase::kBoth) {
    run.phase = Phase::kRun;
  }
  return run;
}

std::string SweepTable(const Sweep& sweep, const std::vector<Report>& reports) {
  std::string out =
      absl::StrFormat("%-12s %14s %9s %9s %9s %10s %8s %10s\n", sweep.flag, "operations/s",
                      "p50 us", "p99 us", "p99.9 us", "max us", "errors", "READs/GET");
  for (size_t i = 0; i < reports.size(); ++i) {
    const Metrics& metrics = reports[i].measured.metrics;
    const Histogram latency = metrics.Latencies();
    const auto us = [&latency](double fraction) {
      return static_cast<double>(latency.Percentile(fraction)) / 1000;
    };
    const VerbSums& gets = metrics.of(OpKind::kGet).verbs;
    const double reads = gets.operations == 0 ? 0
                                              : static_cast<double>(gets.reads.value()) /
                                                    static_cast<double>(gets.operations);
    absl::StrAppendFormat(&out, "%-12d %14.0f %9.2f %9.2f %9.2f %10.2f %8d %10.3f\n",
                          sweep.values[i], PerSecond(reports[i].measured), us(0.5), us(0.99),
                          us(0.999), static_cast<double>(latency.max()) / 1000, Errors(reports[i]),
                          reads);
  }
  return out;
}

std::string SweepJson(const Sweep& sweep, const std::vector<Report>& reports) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const Report& report : reports)
    runs.push_back(nlohmann::ordered_json::parse(ToJson(report)));
  const nlohmann::ordered_json json = {
      {"schema", kReportSchema}, {"sweep", sweep.flag}, {"runs", runs}};
  return json.dump(2) + "\n";
}

}  // namespace gannet::kvload
