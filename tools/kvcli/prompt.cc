#include "tools/kvcli/prompt.h"

// readline's headers need FILE.
#include <cstdio>
// clang-format off
#include <readline/history.h>
#include <readline/readline.h>
// clang-format on
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/kvcli/hint.h"
#include "tools/kvcli/word_completion.h"

namespace gannet::kvcli {
namespace {

constexpr int kHistoryLinesMax = 1000;

// readline calls back without a context, so what was seen is global. One thread.
std::set<std::string> keys;
std::vector<std::string> matches;

// readline asks for one candidate after another. `state` is 0 for the first.
char* NextMatch(const char*, int state) {
  const auto index = static_cast<size_t>(state);
  return index < matches.size() ? strdup(matches[index].c_str()) : nullptr;
}

// readline takes for a word what is behind a blank, a quote or a =.
char** Complete(const char* text, int start, int /*end*/) {
  const std::string_view before(rl_line_buffer, static_cast<size_t>(start));
  WordCompletion completion = CompletionOf(before, text, keys);
  rl_attempted_completion_over = 1;  // no file names unless asked for here
  if (completion.files) return rl_completion_matches(text, rl_filename_completion_function);
  matches = std::move(completion.words);
  // A value follows a =.
  if (matches.size() == 1 && matches[0].ends_with('=')) rl_completion_suppress_append = 1;
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

// State that the prompt's callbacks and signal handler share with its loop. One thread.
struct Line {
  bool complete = false;
  bool at_end = false;
  std::string text;
};
Line line;
Shell* interrupted_shell = nullptr;
volatile std::sig_atomic_t interrupted = 0;

// While a line is read, readline restores the terminal and raises the signal again, for this
// handler. While a command runs, the signal comes here at once.
void OnInterrupt(int) {
  interrupted = 1;
  interrupted_shell->Interrupt();
}

void OnLine(char* text) {
  line.complete = true;
  line.at_end = text == nullptr;
  if (text != nullptr) line.text = text;
  std::free(text);
  rl_callback_handler_remove();
}

// Returns the columns that a text takes, or nullopt if it has bytes of which only readline knows
// how it shows them.
std::optional<size_t> ColumnsOf(const char* text) {
  std::vector<wchar_t> wide(std::strlen(text) + 1);
  if (std::mbstowcs(wide.data(), text, wide.size()) == static_cast<size_t>(-1)) return {};
  const int columns = wcswidth(wide.data(), wide.size());
  return columns < 0 ? std::nullopt : std::optional<size_t>(columns);
}

// Grey text behind the cursor that says what the command still takes. It is on the screen only
// while the prompt waits for a key. So readline, which knows nothing of it, always finds the screen
// as it left it.
class ShownHint {
 public:
  void Enable() {
    const char* term = std::getenv("TERM");
    const char* no_color = std::getenv("NO_COLOR");  // https://no-color.org
    enabled_ = isatty(STDOUT_FILENO) != 0 && term != nullptr && *term != '\0' &&
               std::strcmp(term, "dumb") != 0 && (no_color == nullptr || *no_color == '\0');
  }

  void Show() {
    if (!enabled_ || shown_) return;
    const std::string hint = CutHint(HintFor(rl_line_buffer), Room());
    if (hint.empty()) return;
    std::fprintf(rl_outstream, "\033[90m%s\033[0m\033[%zuD", hint.c_str(), hint.size());
    std::fflush(rl_outstream);
    shown_ = true;
  }

  // readline writes to the same stream, and flushes it.
  void Erase() {
    if (shown_) std::fputs("\033[K", rl_outstream);
    shown_ = false;
  }

 private:
  // Returns the columns behind the line. 0: the line does not end at the cursor and within the
  // first row, or readline shows something else than the line.
  static size_t Room() {
    const bool searches = RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_NUMERICARG);
    const char* mode = rl_variable_value("show-mode-in-prompt");  // makes the prompt longer
    if (rl_point != rl_end || searches || (mode != nullptr && std::strcmp(mode, "on") == 0)) {
      return 0;
    }
    const auto prompt = ColumnsOf(rl_prompt);
    const auto text = ColumnsOf(rl_line_buffer);
    int rows = 0;
    int columns = 0;
    rl_get_screen_size(&rows, &columns);
    if (!prompt || !text) return 0;
    // In the last column some terminals go on to the next row.
    const size_t taken = *prompt + *text + 1;
    return static_cast<size_t>(columns) > taken ? static_cast<size_t>(columns) - taken : 0;
  }

  bool enabled_ = false;
  bool shown_ = false;
};
ShownHint shown_hint;

void GiveLineUp() {
  interrupted = 0;
  shown_hint.Erase();
  rl_free_line_state();
  rl_callback_sigcleanup();
  rl_replace_line("", /*clear_undo=*/1);
  rl_crlf();
  rl_on_new_line();
  rl_redisplay();
}

// Returns a line, or nullopt at the end of the input.
std::optional<std::string> ReadLine(const std::string& prompt) {
  // readline's handler only notes a signal, perhaps just before the wait begins. So this looks from
  // time to time.
  constexpr int kLookMs = 100;
  line = {};
  interrupted = 0;
  std::fflush(stdout);  // answers come before what readline draws
  rl_callback_handler_install(prompt.c_str(), OnLine);
  while (!line.complete) {
    pollfd in{STDIN_FILENO, POLLIN, 0};
    // No hint between keys that come together, as a line that is pasted.
    if (poll(&in, 1, 0) == 0) shown_hint.Show();
    const bool readable = poll(&in, 1, kLookMs) > 0;
    if (readable || rl_pending_signal() != 0) shown_hint.Erase();
    rl_check_signals();
    if (interrupted != 0) {
      GiveLineUp();
    } else if (readable) {
      rl_callback_read_char();
    }
  }
  if (line.at_end) return std::nullopt;
  return std::move(line.text);
}

// Returns true to quit.
bool RunLine(Shell& shell, const std::string& text) {
  const auto words = SplitLine(text);
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
  rl_readline_name = "kvcli";
  // While a line is read, a signal may end a write of readline. On stdout that would count as an
  // answer that could not be written. So readline draws on a stream of its own.
  using Stream = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  const int terminal = dup(STDOUT_FILENO);
  const Stream drawn(terminal < 0 ? nullptr : fdopen(terminal, "w"), &std::fclose);
  if (drawn != nullptr) rl_outstream = drawn.get();
  shown_hint.Enable();
  rl_attempted_completion_function = Complete;
  using_history();
  stifle_history(kHistoryLinesMax);
  const std::string history = HistoryFile();
  if (!history.empty()) read_history(history.c_str());
  std::printf("help lists the commands, quit or Ctrl-D leaves\n");
  const std::string prompt = absl::StrCat("gannet ", server, "> ");
  interrupted_shell = &shell;
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  // Otherwise Ctrl-C while an answer is written to the terminal makes that write fail (signal(7)).
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  bool quit = false;
  while (!quit) {
    const std::optional<std::string> text = ReadLine(prompt);
    if (!text) {
      std::printf("\n");
      break;
    }
    if (!text->empty()) add_history(text->c_str());
    quit = RunLine(shell, *text);
  }
  std::signal(SIGINT, SIG_DFL);
  rl_outstream = stdout;
  SaveHistory(history);
  return kExitDone;
}

}  // namespace gannet::kvcli
