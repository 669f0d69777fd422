#include "common/protocol/member_standing.h"

#include <array>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"

namespace gannet {
namespace {

constexpr std::array kRoles = {MemberRole::kJoining, MemberRole::kBackup, MemberRole::kPrimary,
                               MemberRole::kEnded};

// Takes "NAME=NUMBER" and a blank, or the end, from the front of `text`.
template <class Number>
bool Take(std::string_view name, int base, std::string_view* text, Number* number) {
  if (!text->starts_with(name)) return false;
  text->remove_prefix(name.size());
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), *number, base);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  if (text->empty()) return true;
  if (!text->starts_with(' ')) return false;
  text->remove_prefix(1);
  return true;
}

}  // namespace

std::string_view NameOf(MemberRole role) {
  switch (role) {
    case MemberRole::kJoining:
      return "joining";
    case MemberRole::kBackup:
      return "backup";
    case MemberRole::kPrimary:
      return "primary";
    case MemberRole::kEnded:
      break;
  }
  return "ended";
}

std::string ReasonOf(const MemberStanding& it) {
  GANNET_CHECK(it.joined_percent <= 100, "a share of more than all");
  return absl::StrFormat("role=%s epoch=%u process=%016x applied=%u up_s=%u joined=%u lease=%u",
                         NameOf(it.role), it.epoch, it.incarnation, it.applied, it.uptime_s,
                         it.joined_percent, it.lease_left_ms);
}

std::optional<MemberStanding> ParseMemberStanding(std::string_view reason) {
  std::string_view rest = reason;
  MemberStanding it;
  for (const MemberRole role : kRoles) {
    const std::string begin = absl::StrCat("role=", std::string(NameOf(role)), " ");
    if (!reason.starts_with(begin)) continue;
    it.role = role;
    rest.remove_prefix(begin.size());
  }
  const bool whole =
      rest.size() < reason.size() && Take("epoch=", 10, &rest, &it.epoch) &&
      Take("process=", 16, &rest, &it.incarnation) && Take("applied=", 10, &rest, &it.applied) &&
      Take("up_s=", 10, &rest, &it.uptime_s) && Take("joined=", 10, &rest, &it.joined_percent) &&
      Take("lease=", 10, &rest, &it.lease_left_ms);
  if (!whole || it.joined_percent > 100) return std::nullopt;
  // Leading zeroes, and a missing blank.
  const std::string said = ReasonOf(it);
  if (!reason.starts_with(said)) return std::nullopt;
  return reason.size() == said.size() || reason[said.size()] == ' ' ? std::optional(it)
                                                                    : std::nullopt;
}

}  // namespace gannet
