#ifndef GANNET_COMMON_CLUSTER_GROUP_POLICY_H_
#define GANNET_COMMON_CLUSTER_GROUP_POLICY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace gannet {

// What a write without room does: it fails, or other items go.
enum class OnFull : uint8_t { kReject, kEvict };
std::string_view NameOf(OnFull on_full);  // "reject", "evict"
std::optional<OnFull> OnFullNamed(std::string_view name);

// What the members of a group do alike, as an operator has set it. It lies beside the GroupConfig,
// to which no field can be added: the release before this one must read that, and ignores this.
struct GroupPolicy {
  OnFull on_full = OnFull::kReject;

  bool operator==(const GroupPolicy&) const = default;
};

std::string Encode(const GroupPolicy& policy);
// The errors are those of the decoders of cluster_config.h.
absl::StatusOr<GroupPolicy> DecodeGroupPolicy(std::string_view text);

}  // namespace gannet

#endif  // GANNET_COMMON_CLUSTER_GROUP_POLICY_H_
