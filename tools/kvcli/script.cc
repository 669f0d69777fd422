#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/kvcli/answers.h"
#include "tools/kvcli/prompt.h"

namespace gannet::kvcli {
namespace {

// Reads lines of stdin, and knows whether one can be read without waiting.
class Lines {
 public:
  // Returns true if there is a line, or the end.
  bool Ready() {
    while (!at_end_ && buffer_.find('\n', begin_) == std::string::npos) {
      pollfd in{STDIN_FILENO, POLLIN, 0};
      if (poll(&in, 1, 0) <= 0) return false;
      Fill();
    }
    return true;
  }

  // Returns a line, or nullopt at the end. REQUIRES: Ready.
  std::optional<std::string> Next() {
    const size_t end = std::min(buffer_.find('\n', begin_), buffer_.size());
    if (begin_ == buffer_.size()) return std::nullopt;
    std::string line = buffer_.substr(begin_, end - begin_);
    begin_ = std::min(end + 1, buffer_.size());
    return line;
  }

 private:
  void Fill() {
    buffer_.erase(0, begin_);
    begin_ = 0;
    const size_t before = buffer_.size();
    buffer_.resize(before + kBlock);
    const ssize_t n = read(STDIN_FILENO, buffer_.data() + before, kBlock);
    buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    at_end_ = n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
  }

  static constexpr size_t kBlock = 1 << 16;
  std::string buffer_;
  size_t begin_ = 0;
  bool at_end_ = false;
};

// Waits for a line, after sending all answers to the reader.
void AwaitLine(Lines& lines, Pipeline& pipeline) {
  while (!lines.Ready()) {
    pipeline.Poll();
    if (pipeline.idle()) FlushAnswers();
    pipeline.WaitOr(STDIN_FILENO);
  }
}

}  // namespace

int RunScript(Shell& shell, Pipeline& pipeline) {
  int worst = kExitDone;
  Lines lines;
  for (size_t number = 1;; ++number) {
    AwaitLine(lines, pipeline);
    const std::optional<std::string> line = lines.Next();
    if (!line) break;
    const auto words = SplitLine(*line);
    if (words.ok() && words->empty()) continue;
    auto command = words.ok() ? ParseCommand(*words) : words.status();
    if (command.ok() && pipeline.Takes(*command)) {
      pipeline.Run(*std::move(command));
      continue;
    }
    pipeline.Finish();
    if (!command.ok()) {
      worst = std::max(worst, shell.ReportUsage(absl::InvalidArgumentError(absl::StrCat(
                                  "line ", number, ": ", command.status().message()))));
      continue;
    }
    if (command->verb == Verb::kQuit) break;
    // While a child runs, nobody polls the connection, and the server would take it for dead.
    if (!command->child.empty()) pipeline.Disconnect();
    worst = std::max(worst, shell.Execute(*command));
  }
  pipeline.Finish();
  FlushAnswers();
  return std::max(worst, pipeline.worst());
}

}  // namespace gannet::kvcli
