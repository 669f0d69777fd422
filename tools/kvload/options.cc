#include "tools/kvload/options.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tools/kvload/named_mix.h"
#include "tools/kvload/value.h"

namespace gannet::kvload {
namespace {

absl::Status CheckRange(const char* flag, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, ": must be from ", low, " to ", high));
}

bool IsRawRead(const LoadOptions& options) { return options.workload == kRawReadWorkload; }

absl::Status CheckSizes(const LoadOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckRange("key_size", options.sizes.key_bytes, 1, kKeyBytesMax));
  const bool verified = options.verify && !IsRawRead(options);
  const uint32_t value_min = verified ? kVerifiedValueBytesMin : (IsRawRead(options) ? 1 : 0);
  const uint32_t smallest =
      options.sizes.mixed ? options.sizes.mixed->smallest() : options.sizes.value_bytes;
  if (verified && smallest < value_min) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.sizes.mixed ? "--value_sizes: " : "--value_size=", smallest,
        ": a value that can be verified needs ", value_min, " bytes; or give --verify=false"));
  }
  if (options.sizes.mixed && IsRawRead(options)) {
    return absl::InvalidArgumentError(
        "--value_sizes cannot be used with --workload=raw_read, whose READs have one size");
  }
  return CheckRange("value_size", options.sizes.value_bytes, value_min, kValueBytesMax);
}

absl::Status CheckWarmUp(const LoadOptions& options) {
  if (options.warmup_seconds == 0) return absl::OkStatus();
  if (!(options.warmup_seconds > 0 && options.warmup_seconds <= kSecondsMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--warmup_seconds=", options.warmup_seconds, ": 0 to ", kSecondsMax));
  }
  if (!IsRawRead(options) && options.trace_file.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--warmup_seconds cannot be used with --workload=raw_read or --trace");
}

// Every record that the run may insert must have a key of its own.
absl::Status CheckKeySpace(const LoadOptions& options) {
  // Counters and growing values have keys of each thread, behind a letter.
  const bool own_keys = !options.mix.empty() && ParseMix(options.mix)->HasOwnKeys();
  const uint64_t records = !options.mix.empty() ? options.records * (own_keys ? options.threads : 1)
                                                : options.records + options.operations;
  uint64_t keys = 1;
  for (uint32_t i = own_keys ? 1 : 0; i < options.sizes.key_bytes && keys < records; ++i) {
    if (keys > std::numeric_limits<uint64_t>::max() / 10) return absl::OkStatus();
    keys *= 10;
  }
  if (keys >= records) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--key_size=", options.sizes.key_bytes,
                                                 ": keys are decimal numbers, and ", records,
                                                 " of them do not fit"));
}

// Refuses a stride for operations that insert, or that bring their own keys. An inserted record
// would be one that the stride leaves out.
absl::Status CheckStride(const LoadOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckRange("stride", options.stride, 1, options.records));
  if (options.stride == 1) return absl::OkStatus();
  const auto mix = MixOf(options.workload);
  if (options.trace_file.empty() && (!mix.ok() || mix->insert == 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--stride cannot be used with a trace, or with a workload that inserts");
}

// Redis knows neither versions nor prepend. The library for memcached is used for GETs and SETs
// only.
bool HasOperation(BackendKind backend, OpKind kind) {
  if (backend == BackendKind::kGannet) return true;
  if (kind == OpKind::kGet || kind == OpKind::kPut || kind == OpKind::kRmw) return true;
  return backend == BackendKind::kRedis && kind != OpKind::kCas && kind != OpKind::kPrepend;
}

absl::Status CheckMix(const LoadOptions& options) {
  if (options.ttl.count() < 0) return absl::InvalidArgumentError("--ttl_ms is negative");
  if (options.mix.empty()) return absl::OkStatus();
  if (IsRawRead(options) || !options.trace_file.empty() || options.stride != 1) {
    return absl::InvalidArgumentError(
        "--mix cannot be used with --workload=raw_read, --trace or --stride");
  }
  GANNET_ASSIGN_OR_RETURN(const NamedMix mix, ParseMix(options.mix));
  for (const NamedMix::Part& part : mix.parts) {
    GANNET_RETURN_IF_ERROR(CheckOperation(options.backend, part.kind, "--mix"));
  }
  return absl::OkStatus();
}

// Other stores than Gannet have no memory to READ, and no client for several servers.
absl::Status CheckBackend(const LoadOptions& options) {
  if (options.backend == BackendKind::kGannet) return absl::OkStatus();
  const std::string backend(NameOf(options.backend));
  if (IsRawRead(options)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--workload=raw_read needs --backend=gannet: --backend=", backend,
                     " has no memory to READ"));
  }
  if (options.servers.size() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--backend=", backend, " takes one --server, not ", options.servers.size()));
}

}  // namespace

absl::Status CheckOperation(BackendKind backend, OpKind kind, std::string_view where) {
  if (HasOperation(backend, kind)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(where), ": --backend=", std::string(NameOf(backend)), " has no ",
                   std::string(kOpNames[static_cast<size_t>(kind)]), " here"));
}

absl::StatusOr<BackendKind> BackendOf(std::string_view name) {
  if (name == "gannet") return BackendKind::kGannet;
  if (name == "redis") return BackendKind::kRedis;
  if (name == "memcached") return BackendKind::kMemcached;
  return absl::InvalidArgumentError(
      absl::StrCat("--backend=", std::string(name), ": gannet, redis or memcached"));
}

std::string_view NameOf(BackendKind backend) {
  switch (backend) {
    case BackendKind::kRedis:
      return "redis";
    case BackendKind::kMemcached:
      return "memcached";
    default:
      return "gannet";
  }
}

std::string DefaultServer(BackendKind backend) {
  switch (backend) {
    case BackendKind::kRedis:
      return "127.0.0.1:6379";
    case BackendKind::kMemcached:
      return "127.0.0.1:11211";
    default:
      return "127.0.0.1:7471";
  }
}

absl::StatusOr<Phase> PhaseOf(std::string_view name) {
  if (name == "load") return Phase::kLoad;
  if (name == "run") return Phase::kRun;
  if (name == "both") return Phase::kBoth;
  return absl::InvalidArgumentError(
      absl::StrCat("--phase=", std::string(name), ": load, run or both"));
}

absl::StatusOr<Wait> WaitOf(std::string_view name) {
  if (name == "poll") return Wait::kPoll;
  if (name == "adaptive") return Wait::kAdaptive;
  return absl::InvalidArgumentError(
      absl::StrCat("--wait=", std::string(name), ": poll or adaptive"));
}

absl::Status Validate(const LoadOptions& options) {
  if (!IsRawRead(options) && options.trace_file.empty()) {
    GANNET_RETURN_IF_ERROR(MixOf(options.workload).status());
  }
  GANNET_RETURN_IF_ERROR(CheckRange("records", options.records, 1, kOperationsMax));
  GANNET_RETURN_IF_ERROR(CheckRange("operations", options.operations, 1, kOperationsMax));
  if (!(options.seconds >= 0 && options.seconds <= kSecondsMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--seconds=", options.seconds, ": 0 to ", kSecondsMax));
  }
  GANNET_RETURN_IF_ERROR(CheckRange("threads", options.threads, 1, kThreadsMax));
  GANNET_RETURN_IF_ERROR(CheckRange("depth", options.depth, 1, kDepthMax));
  GANNET_RETURN_IF_ERROR(CheckRange("connections", options.connections, 1, kConnectionsMax));
  GANNET_RETURN_IF_ERROR(CheckWarmUp(options));
  GANNET_RETURN_IF_ERROR(
      CheckRange("deadline_ms", static_cast<uint64_t>(options.deadline.count()), 1, 3'600'000));
  if (options.servers.empty()) return absl::InvalidArgumentError("--server is empty");
  GANNET_RETURN_IF_ERROR(CheckBackend(options));
  GANNET_RETURN_IF_ERROR(CheckStride(options));
  GANNET_RETURN_IF_ERROR(CheckMix(options));
  GANNET_RETURN_IF_ERROR(CheckSizes(options));
  return CheckKeySpace(options);
}

uint64_t RecordsUsed(const LoadOptions& options) { return options.records / options.stride; }

uint64_t LocationCacheBytesOfThread(const LoadOptions& options) {
  return options.location_cache_bytes / options.threads;
}

}  // namespace gannet::kvload
