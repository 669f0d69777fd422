#ifndef GANNET_TOOLS_KVLOAD_WORKLOAD_H_
#define GANNET_TOOLS_KVLOAD_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace gannet::kvload {

enum class Distribution : uint8_t { kZipfian, kUniform, kLatest };

// YCSB's zipfian constant (Cooper et al., "Benchmarking cloud serving systems with YCSB", 2010).
inline constexpr double kZipfTheta = 0.99;

// The shares of the operations of a YCSB core workload, in percent.
struct Mix {
  int get = 0;
  int put = 0;
  int insert = 0;
  int rmw = 0;  // read-modify-write: a GET, then a PUT of the same key, timed as one
  Distribution distribution = Distribution::kZipfian;
};

// Returns the mix of "a", "b", "c", "d" or "f", in either case. Returns InvalidArgument for others,
// with the reason for "e".
absl::StatusOr<Mix> MixOf(std::string_view workload);

// Parses "zipfian", "uniform" or "latest".
absl::StatusOr<Distribution> DistributionOf(std::string_view name);
std::string_view NameOf(Distribution distribution);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_WORKLOAD_H_
