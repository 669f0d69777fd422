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

constexpr char kBlanks[] = " \t\n\v\f\r";

bool IsBlank(char c) { return std::string_view(kBlanks).find(c) != std::string_view::npos; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

// Takes a character of a word between double quotes, and moves behind it.
char TakeEscaped(std::string_view line, size_t* at) {
  if (line[*at] != '\\' || *at + 1 == line.size()) return line[(*at)++];
  const std::string_view rest = line.substr(*at + 1);
  if (rest[0] == 'x' && rest.size() > 2 && HexDigit(rest[1]) >= 0 && HexDigit(rest[2]) >= 0) {
    *at += 4;
    return static_cast<char>(HexDigit(rest[1]) << 4 | HexDigit(rest[2]));
  }
  *at += 2;
  constexpr std::string_view kLetters = "nrtba";
  constexpr std::string_view kMeant = "\n\r\t\b\a";
  const size_t letter = kLetters.find(rest[0]);
  return letter == std::string_view::npos ? rest[0] : kMeant[letter];
}

// Takes a word that may have quoted parts, as redis-cli and Redis do. Returns false if a quote is
// not closed, or if something is right behind it.
bool TakeQuotedWord(std::string_view line, size_t* at, std::string* word) {
  char quote = 0;
  while (*at < line.size() && (quote != 0 || !IsBlank(line[*at]))) {
    const char c = line[*at];
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
      ++*at;
    } else if (quote != 0 && c == quote) {
      ++*at;
      return *at == line.size() || IsBlank(line[*at]);
    } else if (quote == '"') {
      *word += TakeEscaped(line, at);
    } else {
      if (quote == '\'' && line.substr(*at, 2) == "\\'") ++*at;
      *word += line[(*at)++];
    }
  }
  return quote == 0;
}

Parsed ParseArray(std::string_view input, ParsedCommand* command);

// Rewrites the line as an array, so that its words lie somewhere as they are meant.
Parsed ParseQuoted(std::string_view line, size_t consumed, ParsedCommand* command) {
  std::string array;
  size_t count = 0;
  for (size_t at = 0;; ++count) {
    while (at < line.size() && IsBlank(line[at])) ++at;
    if (at == line.size()) break;
    std::string word;
    if (!TakeQuotedWord(line, &at, &word)) {
      return Broken("ERR Protocol error: unbalanced quotes in request");
    }
    absl::StrAppend(&array, "$", word.size(), "\r\n", word, "\r\n");
  }
  command->rewritten = absl::StrCat("*", count, "\r\n", array);
  const Parsed parsed = ParseArray(command->rewritten, command);
  return parsed.outcome == Parsed::Outcome::kCommand ? Complete(consumed) : parsed;
}

Parsed ParseInline(std::string_view input, ParsedCommand* command) {
  const size_t newline = input.substr(0, kLineBytesMax).find('\n');
  if (newline == std::string_view::npos) {
    return input.size() < kLineBytesMax ? NeedsMore(input.size() + 1)
                                        : Broken("ERR Protocol error: too big inline request");
  }
  std::string_view line = input.substr(0, newline);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.find_first_of("\"'") != std::string_view::npos) {
    return ParseQuoted(line, newline + 1, command);
  }
  SplitWords(line, &command->words, kBlanks);
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
  command->rewritten.clear();
  command->data = {};
  command->has_data = false;
  if (input.empty()) return NeedsMore(1);
  return input[0] == '*' ? ParseArray(input, command) : ParseInline(input, command);
}

}  // namespace gannet::proxy
