#ifndef GANNET_COMMON_CLUSTER_GROUP_POLICY_H_
#define GANNET_COMMON_CLUSTER_GROUP_POLICY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gannet {

// Something that the members of a group do alike. It is a flag of kvserver, of the same name. A
// member is started with what its group has for it, and has it until its next start.
struct PolicySetting {
  const char* name;
  std::span<const char* const> words;  // that it takes; empty: numbers
  uint64_t least = 0;                  // of numbers
  uint64_t most = 0;
  const char* note;  // what an operator who sets it has to know; a sentence, or empty

  // "reject or evict", "1 to 60000".
  std::string Takes() const;
  // "reject|evict", "N".
  std::string Usage() const;
  // InvalidArgument: "NAME must be ...".
  absl::Status Check(std::string_view value) const;
};

// All that there are. Who adds a flag to kvserver decides whether it belongs here: it does if
// clients would notice that the next primary has another value (docs/cluster.md).
std::span<const PolicySetting> PolicySettings();
// Returns nullptr if there is none of this name.
const PolicySetting* FindPolicySetting(std::string_view name);

// What the members of a group do alike, as an operator has set it. It lies beside the GroupConfig,
// to which no field can be added: the release before this one must read that, and ignores this.
//
// It keeps settings that another version knows, so that what one version writes is not lost when
// another one writes it again.
struct GroupPolicy {
  // The text of each setting, as the flag has it, by name. What lies in etcd may be anything: use
  // Find.
  std::map<std::string, std::string> settings = {};

  bool operator==(const GroupPolicy&) const = default;

  // Returns what a setting has. nullopt: the group has not set it, or it has no value that this
  // version knows. Then each member does what its own flag says.
  std::optional<std::string> Find(std::string_view name) const;
  // Returns "NAME=VALUE" of each that this version does not know.
  std::vector<std::string> Unknown() const;
  // Returns this policy with other settings of some names.
  GroupPolicy With(const GroupPolicy& changes) const;
};

// What a new group has if nobody says anything else.
GroupPolicy DefaultGroupPolicy();

// {"format":1,"NAME":"VALUE",...}
std::string Encode(const GroupPolicy& policy);
// Takes settings that this version does not know. The errors are those of the decoders of
// cluster_config.h.
absl::StatusOr<GroupPolicy> DecodeGroupPolicy(std::string_view text);

}  // namespace gannet

#endif  // GANNET_COMMON_CLUSTER_GROUP_POLICY_H_
