#include "tools/kvload/workload.h"

#include <cctype>

#include "absl/strings/str_cat.h"

namespace gannet::kvload {

absl::StatusOr<Mix> MixOf(std::string_view workload) {
  const char letter =
      workload.size() == 1 ? static_cast<char>(std::tolower(workload.front())) : '\0';
  switch (letter) {
    case 'a':
      return Mix{.get = 50, .put = 50};
    case 'b':
      return Mix{.get = 95, .put = 5};
    case 'c':
      return Mix{.get = 100};
    case 'd':
      return Mix{.get = 95, .insert = 5, .distribution = Distribution::kLatest};
    case 'w':
      return Mix{.put = 100};
    case 'e':
      return absl::InvalidArgumentError(
          "workload e needs range scans: Gannet's index is a hash table, keys have no order");
    case 'f':
      return Mix{.get = 50, .rmw = 50};
    default:
      return absl::InvalidArgumentError(absl::StrCat("unknown workload '", std::string(workload),
                                                     "': a, b, c, d, f, w or raw_read"));
  }
}

absl::StatusOr<Distribution> DistributionOf(std::string_view name) {
  for (const auto each : {Distribution::kZipfian, Distribution::kUniform, Distribution::kLatest}) {
    if (name == NameOf(each)) return each;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown distribution '", std::string(name), "': zipfian, uniform or latest"));
}

std::string_view NameOf(Distribution distribution) {
  switch (distribution) {
    case Distribution::kZipfian:
      return "zipfian";
    case Distribution::kUniform:
      return "uniform";
    case Distribution::kLatest:
      return "latest";
  }
  return "unknown";
}

}  // namespace gannet::kvload
