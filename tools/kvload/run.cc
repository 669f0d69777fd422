#include "tools/kvload/run.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tools/kvload/named_mix.h"
#include "tools/kvload/sources.h"
#include "tools/kvload/trace.h"
#include "tools/kvload/value.h"

namespace gannet::kvload {
namespace {

// Divides [0, total) into `parts` parts that are as equal as possible, and returns part `index`.
struct Share {
  uint64_t first;
  uint64_t end;
  uint64_t size() const { return end - first; }
};
Share ShareOf(uint64_t total, uint32_t index, uint32_t parts) {
  const auto cut = [&](uint64_t i) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(total) * i / parts);
  };
  return {cut(index), cut(index + 1)};
}

PhasePlan PlanOf(const LoadOptions& options, std::string name, uint64_t operations) {
  PhasePlan plan;
  plan.name = std::move(name);
  plan.operations = operations;
  plan.threads = options.threads;
  plan.seed = options.seed;
  plan.loop.depth = options.depth;
  plan.loop.value_bytes_max = options.sizes.value_bytes;
  plan.loop.verify = options.verify;
  plan.loop.ttl = options.ttl;
  plan.loop.waits_for_server = options.waits_for_server;
  plan.loop.shares_core = options.wait == Wait::kAdaptive;
  return plan;
}

// Returns the source of one thread's share of `operations` operations of the mix.
YcsbSource SourceOf(const LoadOptions& options, const Mix& mix, uint64_t operations,
                    uint32_t thread, AcknowledgedCounter& records) {
  return YcsbSource(mix, ShareOf(operations, thread, options.threads).size(), options.sizes,
                    options.seed + thread, records, options.stride);
}

// Returns the options of a warm-up. It must not draw the same keys as the run after it: these would
// be known then.
LoadOptions OtherDraws(const LoadOptions& options) {
  LoadOptions other = options;
  other.seed = ~options.seed;
  return other;
}

absl::StatusOr<PhaseResult> RunLoadPhase(const LoadOptions& options,
                                         const Environment& environment) {
  PhasePlan plan = PlanOf(options, "load", options.records);
  plan.source = [&options](uint32_t thread) {
    const Share share = ShareOf(options.records, thread, options.threads);
    return std::make_unique<LoadSource>(share.first, share.end, options.sizes);
  };
  return RunPhase(plan, environment);
}

absl::StatusOr<PhaseResult> RunYcsb(const LoadOptions& options, const Mix& mix, bool loaded,
                                    const Environment& environment) {
  PhasePlan plan = PlanOf(options, options.workload, options.operations);
  plan.seconds = options.seconds;
  plan.start_at = options.start_at;
  plan.rate = options.rate;
  // A server that was restarted during the run has lost the records, so misses are honest then.
  plan.loop.misses_are_wrong =
      loaded && !options.allow_misses && !options.waits_for_server && options.ttl.count() == 0;
  if (options.warm_up) {
    plan.warm_up = [&options](uint32_t thread) {
      const Share share = ShareOf(RecordsUsed(options), thread, options.threads);
      return std::make_unique<LoadSource>(share.first, share.end, options.sizes, OpKind::kGet,
                                          options.stride);
    };
  }
  AcknowledgedCounter records(RecordsUsed(options));
  plan.source = [&](uint32_t thread) {
    return std::make_unique<YcsbSource>(
        SourceOf(options, mix, options.operations, thread, records));
  };
  plan.warm_seconds = options.warmup_seconds;
  plan.warm_load = [&](uint32_t thread) {
    return std::make_unique<YcsbSource>(
        SourceOf(OtherDraws(options), mix, kOperationsMax, thread, records));
  };
  return RunPhase(plan, environment);
}

absl::StatusOr<PhaseResult> RunMix(const LoadOptions& options, Distribution distribution,
                                   bool loaded, const Environment& environment) {
  GANNET_ASSIGN_OR_RETURN(const NamedMix mix, ParseMix(options.mix));
  PhasePlan plan = PlanOf(options, kMixWorkload, options.operations);
  plan.seconds = options.seconds;
  plan.start_at = options.start_at;
  plan.rate = options.rate;
  const bool lossy = options.allow_misses || options.waits_for_server || options.ttl.count() > 0;
  plan.loop.misses_are_wrong = loaded && !lossy && !mix.Removes();
  plan.loop.counters_may_vanish = lossy;
  if (options.warm_up) {
    plan.warm_up = [&options](uint32_t thread) {
      const Share share = ShareOf(options.records, thread, options.threads);
      return std::make_unique<LoadSource>(share.first, share.end, options.sizes, OpKind::kGet);
    };
  }
  const auto source_of = [&](uint64_t operations, uint64_t seed, uint32_t thread) {
    return std::make_unique<MixSource>(
        mix, MixSource::Options{.operations = ShareOf(operations, thread, options.threads).size(),
                                .records = options.records,
                                .sizes = options.sizes,
                                .distribution = distribution,
                                .seed = seed + thread,
                                .thread = thread,
                                .threads = options.threads});
  };
  plan.source = [&](uint32_t thread) {
    return source_of(options.operations, options.seed, thread);
  };
  plan.warm_seconds = options.warmup_seconds;
  plan.warm_load = [&](uint32_t thread) {
    return source_of(kOperationsMax, OtherDraws(options).seed, thread);
  };
  return RunPhase(plan, environment);
}

absl::StatusOr<Report> RunWorkload(const LoadOptions& options, const Environment& environment) {
  Mix mix;
  if (options.mix.empty()) {
    GANNET_ASSIGN_OR_RETURN(mix, MixOf(options.workload));
  }
  if (options.distribution) mix.distribution = *options.distribution;
  Report report{.options = options,
                .workload = options.mix.empty() ? options.workload : options.mix};
  report.distribution = NameOf(mix.distribution);
  if (options.phase != Phase::kRun) {
    GANNET_ASSIGN_OR_RETURN(report.measured, RunLoadPhase(options, environment));
    if (options.phase == Phase::kLoad || !report.measured.cut_short.empty()) return report;
    const uint64_t errors = report.measured.metrics.errors();
    if (errors > 0 && !options.allow_misses && !options.waits_for_server) {
      report.measured.cut_short = absl::StrCat(
          "the load failed: ", errors, " of ", options.records,
          " records were not stored, so the run was not begun (--allow_misses begins it)");
      return report;
    }
    report.load = std::move(report.measured);
  }
  const bool loaded = report.load && report.load->metrics.errors() == 0;
  if (!options.mix.empty()) {
    GANNET_ASSIGN_OR_RETURN(report.measured,
                            RunMix(options, mix.distribution, loaded, environment));
    return report;
  }
  GANNET_ASSIGN_OR_RETURN(report.measured, RunYcsb(options, mix, loaded, environment));
  return report;
}

// Returns whether the event stores a value that a GET verifies.
bool Stores(const TraceEvent& event) {
  return event.put_on_miss || event.kind == OpKind::kPut || event.kind == OpKind::kAdd ||
         event.kind == OpKind::kReplace || event.kind == OpKind::kCas;
}

absl::StatusOr<Report> RunTrace(const LoadOptions& options, const Environment& environment) {
  GANNET_ASSIGN_OR_RETURN(
      const std::vector<TraceEvent> events,
      ReadTraceFile(options.trace_file,
                    {.size_max = kValueBytesMax, .block_bytes = options.sizes.value_bytes}));
  PhasePlan plan = PlanOf(options, kTraceWorkload, events.size());
  plan.loop.value_bytes_max = 0;
  for (const TraceEvent& event : events) {
    plan.loop.value_bytes_max = std::max(plan.loop.value_bytes_max, event.size);
    GANNET_RETURN_IF_ERROR(CheckOperation(options.backend, event.kind, "--trace"));
    if (options.verify && Stores(event) && event.size < kVerifiedValueBytesMin) {
      return absl::InvalidArgumentError(
          "the trace has values that are too small to be verified: give --verify=false");
    }
  }
  plan.loop.counters_may_vanish = true;
  plan.rate = options.rate;
  plan.source = [&](uint32_t thread) {
    return std::make_unique<TraceSource>(events, thread, options.threads);
  };
  Report report{.options = options, .workload = kTraceWorkload};
  GANNET_ASSIGN_OR_RETURN(report.measured, RunPhase(plan, environment));
  return report;
}

absl::StatusOr<Report> RunRawReads(const LoadOptions& options, const Environment& environment) {
  const Mix gets{.get = 100, .distribution = options.distribution.value_or(Distribution::kUniform)};
  PhasePlan plan = PlanOf(options, kRawReadWorkload, options.operations);
  plan.seconds = options.seconds;
  plan.start_at = options.start_at;
  plan.rate = options.rate;
  AcknowledgedCounter records(RecordsUsed(options));
  plan.source = [&](uint32_t thread) {
    return std::make_unique<RawReadSource>(
        SourceOf(options, gets, options.operations, thread, records));
  };
  if (options.raw_items) {
    plan.warm_up = [&](uint32_t thread) {
      return std::make_unique<LocateSource>(
          SourceOf(options, gets, options.operations, thread, records));
    };
  } else if (options.warm_up) {
    plan.warm_up = [&](uint32_t thread) {
      return std::make_unique<RawReadSource>(
          SourceOf(options, gets, options.records * options.threads, thread, records));
    };
  }
  Report report{.options = options, .workload = kRawReadWorkload};
  if (options.raw_items) report.distribution = NameOf(gets.distribution);
  GANNET_ASSIGN_OR_RETURN(report.measured, RunPhase(plan, environment));
  return report;
}

}  // namespace

absl::StatusOr<Report> Run(const LoadOptions& options, const Environment& environment) {
  GANNET_RETURN_IF_ERROR(Validate(options));
  if (!options.trace_file.empty()) return RunTrace(options, environment);
  if (options.workload == kRawReadWorkload) return RunRawReads(options, environment);
  return RunWorkload(options, environment);
}

}  // namespace gannet::kvload
