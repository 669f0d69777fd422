#include "common/auth/parse_auth_keys.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gannet {
namespace {

constexpr std::string_view kBlanks = " \t\r";

// Cuts the next word off the line. Returns an empty view at its end.
std::string_view TakeWord(std::string_view* line) {
  line->remove_prefix(std::min(line->find_first_not_of(kBlanks), line->size()));
  const size_t end = std::min(line->find_first_of(kBlanks), line->size());
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(end);
  return word;
}

std::optional<uint32_t> ParseId(std::string_view word) {
  uint32_t id = 0;
  const char* end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data(), end, id);
  if (error != std::errc() || stopped != end || id == 0) return std::nullopt;
  return id;
}

std::optional<std::string> ParseHex(std::string_view word) {
  if (word.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < word.size(); i += 2) {
    uint8_t byte = 0;
    const char* end = word.data() + i + 2;
    const auto [stopped, error] = std::from_chars(word.data() + i, end, byte, 16);
    if (error != std::errc() || stopped != end) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

// Parses a line that is not empty. Errors do not name the line yet.
absl::StatusOr<AuthKey> ParseLine(std::string_view line) {
  AuthKey key;
  const std::optional<uint32_t> id = ParseId(TakeWord(&line));
  if (!id) return absl::InvalidArgumentError("the key's id is a number from 1 to 4294967295");
  key.id = *id;
  std::optional<std::string> secret = ParseHex(TakeWord(&line));
  if (!secret) return absl::InvalidArgumentError("a key has an even number of hexadecimal digits");
  if (secret->size() < AuthKey::kSecretBytesMin || secret->size() > AuthKey::kSecretBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a key of ", secret->size(), " bytes: it must have ", AuthKey::kSecretBytesMin, " to ",
        AuthKey::kSecretBytesMax, ", which are twice as many hexadecimal digits"));
  }
  key.secret = *std::move(secret);
  const std::string_view right = TakeWord(&line);
  key.replica = right == "replica";
  key.read_only = right == "read" || key.replica;
  if (!(right.empty() || key.read_only) || !TakeWord(&line).empty()) {
    return absl::InvalidArgumentError(
        "behind the key there may be \"read\" or \"replica\", and nothing else");
  }
  return key;
}

}  // namespace

absl::StatusOr<std::vector<AuthKey>> ParseAuthKeys(std::string_view text, std::string_view name) {
  std::vector<AuthKey> keys;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto error = [&](std::string_view why) {
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(name), ":", number, ": ", std::string(why)));
    };
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(kBlanks) == std::string_view::npos) continue;
    absl::StatusOr<AuthKey> key = ParseLine(line);
    if (!key.ok()) return error(std::string(key.status().message()));
    if (std::ranges::find(keys, key->id, &AuthKey::id) != keys.end()) {
      return error(absl::StrCat("a second key with the id ", key->id));
    }
    if (keys.size() == kAuthKeysMax)
      return error(absl::StrCat("more than ", kAuthKeysMax, " keys"));
    keys.push_back(*std::move(key));
  }
  if (!keys.empty()) return keys;
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(name), " has no key: a line is ID HEXKEY [read | replica]"));
}

}  // namespace gannet
