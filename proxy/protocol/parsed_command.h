#ifndef GANNET_PROXY_PROTOCOL_PARSED_COMMAND_H_
#define GANNET_PROXY_PROTOCOL_PARSED_COMMAND_H_

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gannet::proxy {

// Limits of one command, in both protocols. A connection that goes beyond them is refused or
// closed, so that it cannot make the proxy take any amount of memory.
inline constexpr size_t kLineBytesMax = 64 << 10;
inline constexpr size_t kKeysLineBytesMax = 16 << 20;  // of memcached's get and its kin
inline constexpr size_t kArgumentsMax = (1 << 20) + 1;
inline constexpr size_t kCommandBytesMax = (64 << 20) + (1 << 20);

// One command, taken apart. The views are of the bytes that were parsed, or of `rewritten`.
struct ParsedCommand {
  std::vector<std::string_view> words;
  std::string_view data;  // memcached: the data block of a storage command
  bool has_data = false;
  // A line whose words were quoted, as the command that it means. Empty: the bytes are as they
  // came.
  std::string rewritten;
};

// What a parser made of the first bytes of its input.
struct Parsed {
  enum class Outcome : uint8_t {
    kNeedsMore,  // ask again when there are `needed` bytes
    kCommand,
    kRefused,  // `error` is the answer, and the connection goes on behind `consumed`
    kBroken,   // `error` is the last answer, if it is not empty; where the next command begins is
               // unknown
  };
  Outcome outcome = Outcome::kNeedsMore;
  // How many bytes the command has. If it is refused, they may be more than the input has. Then
  // skip the rest when it comes.
  size_t consumed = 0;
  size_t needed = 0;  // more than the input has
  std::string error;  // a line without its end
};

inline Parsed NeedsMore(size_t needed) {
  return {.outcome = Parsed::Outcome::kNeedsMore, .needed = needed};
}
inline Parsed Complete(size_t consumed) {
  return {.outcome = Parsed::Outcome::kCommand, .consumed = consumed};
}
inline Parsed Refused(size_t consumed, std::string error) {
  return {.outcome = Parsed::Outcome::kRefused, .consumed = consumed, .error = std::move(error)};
}
inline Parsed Broken(std::string error) {
  return {.outcome = Parsed::Outcome::kBroken, .error = std::move(error)};
}

// Parses all of `text` as a decimal number. Returns false if it is none, or does not fit.
template <class Number>
bool ParseNumber(std::string_view text, Number* number) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && stopped == end && !text.empty();
}

// Splits at blanks. Several blanks count as one.
inline void SplitWords(std::string_view line, std::vector<std::string_view>* words,
                       const char* blanks = " ") {
  words->clear();
  for (size_t at = 0; (at = line.find_first_not_of(blanks, at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(blanks, at), line.size());
    words->push_back(line.substr(at, end - at));
    at = end;
  }
}

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_PROTOCOL_PARSED_COMMAND_H_
