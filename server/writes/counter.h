#ifndef GANNET_SERVER_WRITES_COUNTER_H_
#define GANNET_SERVER_WRITES_COUNTER_H_

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gannet {

// Counters are decimal numbers of 64 bits with a sign, in the form that FormatCounter writes them:
// an optional '-' and digits without zeros before them. So "007", "-0", "+1", " 1" and "" are none,
// as in Redis.

inline constexpr size_t kCounterBytesMax = 20;  // of "-9223372036854775808"

inline std::optional<int64_t> ParseCounter(std::string_view text) {
  int64_t number = 0;
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.starts_with('0') && text != "0") return std::nullopt;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

// Writes the number to `out`, which has room for kCounterBytesMax, and returns what was written.
inline std::string_view FormatCounter(int64_t number, char* out) {
  const auto [end, error] = std::to_chars(out, out + kCounterBytesMax, number);
  return {out, static_cast<size_t>(end - out)};
}

}  // namespace gannet

#endif  // GANNET_SERVER_WRITES_COUNTER_H_
