#include "common/protocol/not_primary.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace gannet {
namespace {

constexpr std::string_view kPrimary = "primary=";
constexpr std::string_view kEpoch = " epoch=";

}  // namespace

bool IsPrimaryAddress(std::string_view text) {
  constexpr std::string_view kOthers = "._:-[]";
  return !text.empty() && text.size() <= NotPrimary::kAddressBytesMax &&
         std::ranges::all_of(text, [&](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  kOthers.find(c) != std::string_view::npos;
         });
}

std::string ReasonOf(const NotPrimary& it) {
  GANNET_CHECK(IsPrimaryAddress(it.primary), "not an address of a primary");
  return absl::StrCat(std::string(kPrimary), it.primary, std::string(kEpoch), it.epoch);
}

std::optional<NotPrimary> ParseNotPrimary(std::string_view reason) {
  if (!reason.starts_with(kPrimary)) return std::nullopt;
  const size_t space = reason.find(' ');
  if (space == std::string_view::npos || !reason.substr(space).starts_with(kEpoch)) {
    return std::nullopt;
  }
  NotPrimary it;
  it.primary = reason.substr(kPrimary.size(), space - kPrimary.size());
  const std::string_view number = reason.substr(space + kEpoch.size());
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), it.epoch);
  if (error != std::errc() || !IsPrimaryAddress(it.primary)) return std::nullopt;
  // Leading zeroes, and whatever follows the number.
  if (ReasonOf(it) != reason) return std::nullopt;
  return it;
}

}  // namespace gannet
