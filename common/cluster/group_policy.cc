#include "common/cluster/group_policy.h"

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/json_fields.h"

namespace gannet {
namespace {

constexpr uint32_t kPolicyFormat = 1;

}  // namespace

std::string_view NameOf(OnFull on_full) { return on_full == OnFull::kEvict ? "evict" : "reject"; }

std::optional<OnFull> OnFullNamed(std::string_view name) {
  for (const OnFull on_full : {OnFull::kReject, OnFull::kEvict}) {
    if (name == NameOf(on_full)) return on_full;
  }
  return std::nullopt;
}

std::string Encode(const GroupPolicy& policy) {
  return nlohmann::ordered_json{{"format", kPolicyFormat},
                                {"on_full", std::string(NameOf(policy.on_full))}}
      .dump();
}

absl::StatusOr<GroupPolicy> DecodeGroupPolicy(std::string_view text) {
  JsonFields fields(text, "policy");
  const uint32_t format = fields.Number32("format");
  if (format == 0) fields.Fail("no format");
  if (format > kPolicyFormat) {
    return absl::UnimplementedError(absl::StrCat(
        "policy: format ", format, " is newer than this version of Gannet, which knows ",
        kPolicyFormat, ". Update it"));
  }
  const std::optional<OnFull> on_full = OnFullNamed(fields.Text("on_full"));
  if (!on_full) fields.Fail("on_full is neither reject nor evict");
  GANNET_RETURN_IF_ERROR(fields.Finish());
  return GroupPolicy{.on_full = *on_full};
}

}  // namespace gannet
