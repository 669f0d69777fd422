#include "proxy/protocol/memcached_parser.h"

#include <cstdint>

#include "common/layout/item.h"

namespace gannet::proxy {
namespace {

constexpr std::string_view kStorageCommands[] = {"set",    "add",     "replace",
                                                 "append", "prepend", "cas"};
// A block of up to this length is skipped. memcached cannot count further.
constexpr int64_t kSkippedMax = (int64_t{1} << 31) - 3;

// Returns which word is the length of the data block, or 0 if the command has none. A storage
// command with too few words has none: it is answered as a wrong line.
size_t LengthWord(const std::vector<std::string_view>& words) {
  if (words.empty()) return 0;
  if (words[0] == "ms" && words.size() >= 3) return 2;
  for (const std::string_view name : kStorageCommands) {
    if (words[0] == name && words.size() >= 5) return 4;
  }
  return 0;
}

Parsed TakeData(std::string_view input, size_t line_bytes, std::string_view length,
                ParsedCommand* command) {
  int64_t bytes = 0;
  if (!ParseNumber(length, &bytes) || bytes < 0) {
    return Refused(line_bytes, "CLIENT_ERROR bad data chunk");
  }
  if (bytes > kSkippedMax) return Broken("SERVER_ERROR object too large for cache");
  const size_t end = line_bytes + static_cast<size_t>(bytes);
  if (static_cast<size_t>(bytes) > kValueBytesMax) {
    return Refused(end + 2, "SERVER_ERROR object too large for cache");
  }
  if (input.size() < end + 2) return NeedsMore(end + 2);
  if (input.substr(end, 2) != "\r\n") return Refused(end + 2, "CLIENT_ERROR bad data chunk");
  command->data = input.substr(line_bytes, static_cast<size_t>(bytes));
  command->has_data = true;
  return Complete(end + 2);
}

// As memcached: a retrieval may name any number of keys.
size_t LineBytesMax(std::string_view input) {
  for (const std::string_view name : {"get ", "gets ", "gat ", "gats "}) {
    if (input.starts_with(name)) return kKeysLineBytesMax;
  }
  return kLineBytesMax;
}

}  // namespace

Parsed ParseMemcached(std::string_view input, ParsedCommand* command) {
  const size_t line_max = LineBytesMax(input);
  const size_t newline = input.substr(0, line_max).find('\n');
  if (newline == std::string_view::npos) {
    return input.size() < line_max ? NeedsMore(input.size() + 1)
                                   : Broken("CLIENT_ERROR line too long");
  }
  std::string_view line = input.substr(0, newline);
  if (line.ends_with('\r')) line.remove_suffix(1);
  SplitWords(line, &command->words);
  command->data = {};
  command->rewritten.clear();
  command->has_data = false;
  const size_t length_word = LengthWord(command->words);
  if (length_word == 0) return Complete(newline + 1);
  return TakeData(input, newline + 1, command->words[length_word], command);
}

}  // namespace gannet::proxy
