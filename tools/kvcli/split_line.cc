#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tools/kvcli/command.h"

namespace gannet::kvcli {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

class Splitter {
 public:
  explicit Splitter(std::string_view rest) : rest_(rest) {}

  absl::StatusOr<std::vector<std::string>> Split() {
    if (rest_.starts_with('#')) return words_;
    while (!rest_.empty()) GANNET_RETURN_IF_ERROR(Step());
    EndWord();
    return words_;
  }

 private:
  char Take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  void EndWord() {
    if (in_word_) words_.push_back(std::move(word_));
    word_.clear();
    in_word_ = false;
  }

  absl::Status Step() {
    const char c = Take();
    if (IsBlank(c)) {
      EndWord();
      return absl::OkStatus();
    }
    in_word_ = true;  // also for '' and "": an empty word
    if (c == '\'') return SingleQuoted();
    if (c == '"') return DoubleQuoted();
    if (c != '\\') {
      word_ += c;
      return absl::OkStatus();
    }
    if (rest_.empty()) return absl::InvalidArgumentError("nothing behind the last \\");
    word_ += Take();
    return absl::OkStatus();
  }

  absl::Status SingleQuoted() {
    const size_t end = rest_.find('\'');
    if (end == std::string_view::npos) return absl::InvalidArgumentError("a ' is not closed");
    word_ += rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return absl::OkStatus();
  }

  absl::Status DoubleQuoted() {
    while (!rest_.empty()) {
      const char c = Take();
      if (c == '"') return absl::OkStatus();
      if (c == '\\') {
        GANNET_RETURN_IF_ERROR(Escape());
      } else {
        word_ += c;
      }
    }
    return absl::InvalidArgumentError("a \" is not closed");
  }

  absl::Status Escape() {
    constexpr std::string_view kLetters = "ntr0\\\"";
    constexpr std::string_view kMeanings("\n\t\r\0\\\"", 6);
    if (rest_.empty()) return absl::InvalidArgumentError("a \" is not closed");
    const char c = Take();
    if (c == 'x') return HexByte();
    const size_t found = kLetters.find(c);
    if (found == std::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrCat("\\", std::string(1, c), " is not known"));
    }
    word_ += kMeanings[found];
    return absl::OkStatus();
  }

  absl::Status HexByte() {
    const int high = rest_.empty() ? -1 : HexDigit(rest_[0]);
    const int low = rest_.size() < 2 ? -1 : HexDigit(rest_[1]);
    if (high < 0 || low < 0) return absl::InvalidArgumentError("\\x needs two hexadecimal digits");
    word_ += static_cast<char>(high * 16 + low);
    rest_.remove_prefix(2);
    return absl::OkStatus();
  }

  std::string_view rest_;
  std::string word_;
  bool in_word_ = false;
  std::vector<std::string> words_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitLine(std::string_view line) {
  return Splitter(line).Split();
}

}  // namespace gannet::kvcli
