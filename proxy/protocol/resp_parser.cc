#include "proxy/protocol/resp_parser.h"

#include <cstdint>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/layout/item.h"

namespace gannet::proxy {
namespace {

constexpr size_t kLengthLineMax = 32;  // of a line that holds a number

// Reads the parts of one command from left to right.
class Reader {
 public:
  explicit Reader(std::string_view input) : input_(input) {}

  size_t at() const { return at_; }

  // Takes a line "<mark><number>\r\n". Returns what stopped it, if something did.
  std::optional<Parsed> TakeLength(const char* what, int64_t* length) {
    const std::string_view rest = input_.substr(at_ + 1, kLengthLineMax);
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) {
      if (rest.size() < kLengthLineMax) return NeedsMore(input_.size() + 1);
      return Broken(absl::StrCat("ERR Protocol error: invalid ", what, " length"));
    }
    const bool has_return = end > 0 && rest[end - 1] == '\r';
    if (!has_return || !ParseNumber(rest.substr(0, end - 1), length)) {
      return Broken(absl::StrCat("ERR Protocol error: invalid ", what, " length"));
    }
    at_ += 1 + end + 1;
    return {};
  }

  std::optional<Parsed> TakeBulk(std::string_view* word) {
    if (at_ == input_.size()) return NeedsMore(at_ + 1);
    if (input_[at_] != '$') {
      return Broken("ERR Protocol error: expected '$' before each argument");
    }
    int64_t bytes = 0;
    if (auto stopped = TakeLength("bulk", &bytes)) return stopped;
    if (bytes < 0 || bytes > static_cast<int64_t>(kValueBytesMax)) {
      return Broken("ERR Protocol error: invalid bulk length");
    }
    const size_t end = at_ + static_cast<size_t>(bytes) + 2;
    if (end > kCommandBytesMax) return Broken("ERR Protocol error: too long a command");
    if (input_.size() < end) return NeedsMore(end);
    if (input_.substr(end - 2, 2) != "\r\n") {
      return Broken("ERR Protocol error: no end of line behind an argument");
    }
    *word = input_.substr(at_, static_cast<size_t>(bytes));
    at_ = end;
    return {};
  }

 private:
  const std::string_view input_;
  size_t at_ = 0;
};

Parsed ParseArray(std::string_view input, ParsedCommand* command) {
  Reader reader(input);
  int64_t count = 0;
  if (auto stopped = reader.TakeLength("multibulk", &count)) return *stopped;
  if (count > static_cast<int64_t>(kArgumentsMax)) {
    return Broken("ERR Protocol error: invalid multibulk length");
  }
  for (int64_t i = 0; i < count; ++i) {
    std::string_view word;
    if (auto stopped = reader.TakeBulk(&word)) return *stopped;
    command->words.push_back(word);
  }
  return Complete(reader.at());
}

Parsed ParseInline(std::string_view input, ParsedCommand* command) {
  const size_t newline = input.substr(0, kLineBytesMax).find('\n');
  if (newline == std::string_view::npos) {
    return input.size() < kLineBytesMax ? NeedsMore(input.size() + 1)
                                        : Broken("ERR Protocol error: too big inline request");
  }
  std::string_view line = input.substr(0, newline);
  if (line.ends_with('\r')) line.remove_suffix(1);
  SplitWords(line, &command->words);
  if (command->words.empty()) return Complete(newline + 1);
  const absl::string_view name(command->words[0].data(), command->words[0].size());
  if (absl::EqualsIgnoreCase(name, "POST") || absl::EqualsIgnoreCase(name, "Host:")) {
    return Broken("");
  }
  return Complete(newline + 1);
}

}  // namespace

Parsed ParseResp(std::string_view input, ParsedCommand* command) {
  command->words.clear();
  command->data = {};
  command->has_data = false;
  if (input.empty()) return NeedsMore(1);
  return input[0] == '*' ? ParseArray(input, command) : ParseInline(input, command);
}

}  // namespace gannet::proxy
