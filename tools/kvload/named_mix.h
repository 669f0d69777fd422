#ifndef GANNET_TOOLS_KVLOAD_NAMED_MIX_H_
#define GANNET_TOOLS_KVLOAD_NAMED_MIX_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/kvload/operation.h"
#include "tools/kvload/sources.h"

namespace gannet::kvload {

// The shares of operations that the user named (--mix), and what they need.
struct NamedMix {
  struct Part {
    OpKind kind;
    double share;  // of all; the shares add up to 1
  };
  std::vector<Part> parts;

  bool has(OpKind kind) const;
  // Returns whether keys that were loaded may be absent: some operation removes them.
  bool Removes() const { return has(OpKind::kDelete); }
  // Returns whether there are operations on keys of their own (OwnKeys).
  bool HasOwnKeys() const;
};

// Parses "get:0.91,put:0.04,gets:0.02,cas:0.03". The shares are taken in proportion to their sum.
// "set" is a put, "gets" a get whose version a cas would use. InvalidArgument says what is wrong.
absl::StatusOr<NamedMix> ParseMix(std::string_view text);

// Counters, and values that grow, are kept apart from the values that are verified by themselves:
// their keys begin with a letter, and each thread has its own.
bool OwnKeys(OpKind kind);
// REQUIRES: OwnKeys(kind).
char FirstLetterOfOwnKey(OpKind kind);
// Returns the kind of an operation that the user or a trace names: "set" is a put, "gets" a get.
std::optional<OpKind> KindOf(std::string_view name);

// A production cache's load: means of one cluster of Twitter's caches, from the statistics that
// were published with its 2020 traces (github.com/twitter/cache-trace, stat/2020Mar.md).
struct Cluster {
  uint32_t number;
  Sizes sizes;
  std::string_view mix;
  std::chrono::milliseconds ttl;
};
// InvalidArgument: no such cluster; the text names all.
absl::StatusOr<Cluster> ClusterOf(uint32_t number);

// Operations of a named mix on the records that were loaded, until `operations` are drawn.
class MixSource : public OperationSource {
 public:
  struct Options {
    uint64_t operations = 0;
    uint64_t records = 0;
    Sizes sizes;
    Distribution distribution = Distribution::kZipfian;
    uint64_t seed = 0;
    uint32_t thread = 0;
    uint32_t threads = 1;
  };
  MixSource(const NamedMix& mix, const Options& options)
      : mix_(mix), options_(options), left_(options.operations), random_(options.seed) {}
  bool Next(LoadOperation& operation) override;

 private:
  OpKind ChooseKind();

  const NamedMix mix_;
  const Options options_;
  uint64_t left_;
  Random random_;
  const Zipf zipf_{kZipfTheta};
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_NAMED_MIX_H_
