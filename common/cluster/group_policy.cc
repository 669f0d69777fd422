#include "common/cluster/group_policy.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/json_fields.h"
#include "common/etcd/etcd_error.h"

namespace gannet {
namespace {

constexpr uint32_t kPolicyFormat = 1;
constexpr size_t kSettingsMax = 64;
constexpr size_t kValueBytesMax = 64;

constexpr std::array<const char*, 2> kOnFull = {"reject", "evict"};
constexpr std::array<const char*, 3> kSync = {"always", "interval", "none"};
constexpr std::array<const char*, 2> kBool = {"true", "false"};

constexpr std::array<PolicySetting, 8> kSettings = {{
    {.name = "on_full", .words = kOnFull, .note = ""},
    {.name = "sync",
     .words = kSync,
     .note = "With always, a member without --data does not start any more"},
    {.name = "sync_interval_ms", .words = {}, .least = 1, .most = 60'000, .note = ""},
    {.name = "session_grace_ms", .words = {}, .least = 0, .most = 24 * 3600 * 1000, .note = ""},
    // Below 100, a busy machine would seem dead.
    {.name = "silence_ms", .words = {}, .least = 100, .most = 60'000, .note = ""},
    {.name = "index_slots", .words = {}, .least = 0, .most = kJsonNumberMax, .note = ""},
    {.name = "index_grows", .words = kBool, .note = ""},
    {.name = "lock_words", .words = {}, .least = 1, .most = 1 << 24, .note = ""},
}};

// Values are shown to people, and come from anybody who can write to etcd.
bool IsValue(std::string_view value) {
  const auto shows = [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '\\'; };
  return value.size() <= kValueBytesMax && std::ranges::all_of(value, shows);
}

}  // namespace

std::string PolicySetting::Takes() const {
  if (words.empty()) return absl::StrCat(least, " to ", most);
  return absl::StrCat(absl::StrJoin(words.first(words.size() - 1), ", "), " or ", words.back());
}

std::string PolicySetting::Usage() const { return words.empty() ? "N" : absl::StrJoin(words, "|"); }

absl::Status PolicySetting::Check(std::string_view value) const {
  uint64_t number = 0;
  const bool taken = words.empty()
                         ? absl::SimpleAtoi(std::string(value), &number) &&
                               absl::StrCat(number) == value && least <= number && number <= most
                         : std::ranges::count(words, value) > 0;
  if (taken) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " must be ", Takes()));
}

std::span<const PolicySetting> PolicySettings() { return kSettings; }

const PolicySetting* FindPolicySetting(std::string_view name) {
  const auto found = std::ranges::find(kSettings, name, &PolicySetting::name);
  return found == kSettings.end() ? nullptr : &*found;
}

std::optional<std::string> GroupPolicy::Find(std::string_view name) const {
  const PolicySetting* const setting = FindPolicySetting(name);
  const auto found = settings.find(std::string(name));
  if (setting == nullptr || found == settings.end()) return std::nullopt;
  return setting->Check(found->second).ok() ? std::optional(found->second) : std::nullopt;
}

std::vector<std::string> GroupPolicy::Unknown() const {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : settings) {
    if (!Find(name)) unknown.push_back(absl::StrCat(name, "=", value));
  }
  return unknown;
}

GroupPolicy GroupPolicy::With(const GroupPolicy& changes) const {
  GroupPolicy changed = changes;
  changed.settings.insert(settings.begin(), settings.end());
  return changed;
}

GroupPolicy DefaultGroupPolicy() { return {.settings = {{"on_full", "reject"}}}; }

std::string Encode(const GroupPolicy& policy) {
  nlohmann::ordered_json json = {{"format", kPolicyFormat}};
  for (const auto& [name, value] : policy.settings) json[name] = value;
  return json.dump();
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
  const GroupPolicy policy = {.settings = fields.OtherTexts(kSettingsMax)};
  for (const auto& [name, value] : policy.settings) {
    if (!IsClusterName(name)) fields.Fail("a setting with an odd name");
    if (!IsValue(value)) fields.Fail(absl::StrCat("an odd value of ", Printable(name)));
  }
  GANNET_RETURN_IF_ERROR(fields.Finish());
  return policy;
}

}  // namespace gannet
