#include "tools/kvcli/prompt.h"

// readline's headers need FILE.
#include <cstdio>
// clang-format off
#include <readline/history.h>
#include <readline/readline.h>
// clang-format on
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gannet::kvcli {
namespace {

constexpr int kHistoryLinesMax = 1000;

// readline calls back without a context, so what it completes from is global. One thread.
std::vector<std::string> verbs;
std::set<std::string> keys;

std::vector<std::string> Matching(std::string_view prefix, const auto& candidates) {
  std::vector<std::string> matching;
  for (const std::string& candidate : candidates) {
    if (candidate.starts_with(prefix)) matching.push_back(candidate);
  }
  return matching;
}

// readline asks for one candidate after the other: `state` is 0 at the first.
char* NextMatch(const char* text, int state) {
  static std::vector<std::string> matches;
  if (state == 0) {
    const std::string_view line(rl_line_buffer);
    const bool first_word = line.find_first_of(" \t") == std::string_view::npos;
    matches = first_word ? Matching(text, verbs) : Matching(text, keys);
  }
  const auto index = static_cast<size_t>(state);
  return index < matches.size() ? strdup(matches[index].c_str()) : nullptr;
}

char** Complete(const char* text, int /*start*/, int /*end*/) {
  rl_attempted_completion_over = 1;  // no file names
  return rl_completion_matches(text, NextMatch);
}

std::string HistoryFile() {
  if (const char* file = std::getenv("GANNET_HISTORY")) return file;
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : absl::StrCat(home, "/.gannet_history");
}

void SaveHistory(const std::string& file) {
  if (file.empty()) return;
  const mode_t before = umask(0077);  // values may be secrets
  write_history(file.c_str());
  umask(before);
}

// True: quit.
bool RunLine(Shell& shell, const char* line) {
  const auto words = SplitLine(line);
  if (words.ok() && words->empty()) return false;
  const auto command = words.ok() ? ParseCommand(*words) : words.status();
  if (!command.ok()) {
    shell.ReportUsage(command.status());
    return false;
  }
  keys.insert(command->keys.begin(), command->keys.end());
  if (command->verb == Verb::kQuit) return true;
  shell.Execute(*command);
  return false;
}

}  // namespace

int RunPrompt(Shell& shell, const std::string& server) {
  verbs = VerbNames();
  rl_readline_name = "kvcli";
  rl_attempted_completion_function = Complete;
  using_history();
  stifle_history(kHistoryLinesMax);
  const std::string history = HistoryFile();
  if (!history.empty()) read_history(history.c_str());
  std::printf("help lists the commands, quit or Ctrl-D leaves\n");
  const std::string prompt = absl::StrCat("gannet ", server, "> ");
  bool quit = false;
  while (!quit) {
    char* line = readline(prompt.c_str());
    if (line == nullptr) {
      std::printf("\n");
      break;
    }
    if (*line != '\0') add_history(line);
    quit = RunLine(shell, line);
    std::free(line);
  }
  SaveHistory(history);
  return kExitDone;
}

}  // namespace gannet::kvcli
