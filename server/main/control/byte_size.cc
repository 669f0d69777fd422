#include "server/main/control/byte_size.h"

#include <cctype>
#include <charconv>
#include <string>

#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

// Returns the exponent of 1024, or -1 if there is no such suffix.
int ExponentOf(std::string_view suffix) {
  std::string lower;
  for (char c : suffix) lower.push_back(static_cast<char>(std::tolower(c)));
  if (lower.empty() || lower == "b") return 0;
  const std::string_view rest = std::string_view(lower).substr(1);
  if (rest != "" && rest != "b" && rest != "ib") return -1;
  const size_t exponent = std::string_view("kmgt").find(lower[0]);
  return exponent == std::string_view::npos ? -1 : static_cast<int>(exponent) + 1;
}

}  // namespace

absl::StatusOr<uint64_t> ParseByteSize(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const int exponent = ExponentOf(text.substr(static_cast<size_t>(end - text.data())));
  if (error != std::errc() || exponent < 0 || number > (UINT64_MAX >> (10 * exponent))) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(text), "' is not a size; write for example 512M or 4G"));
  }
  return number << (10 * exponent);
}

}  // namespace gannet
