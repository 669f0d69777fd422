#include "tools/kvcli/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>

namespace gannet::kvcli {
namespace {

constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";  // the alternate screen, without a cursor
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";
constexpr char kHome[] = "\x1b[H";
constexpr char kClearRestOfLine[] = "\x1b[K";
constexpr char kClearBelow[] = "\x1b[J";
constexpr char kReverse[] = "\x1b[7m";
constexpr char kPlain[] = "\x1b[m";
constexpr char kCtrlC = 3;

constexpr std::array<int, 4> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};

volatile std::sig_atomic_t ended = 0;
volatile std::sig_atomic_t resized = 0;

void OnSignal(int signal) {
  if (signal == SIGWINCH) {
    resized = 1;
  } else {
    ended = 1;
  }
}

void Write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

bool Screen::IsThere() { return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0; }

Screen::Screen() {
  ended = 0;
  resized = 0;
  struct sigaction action {};
  action.sa_handler = OnSignal;
  for (const int signal : kSignals) {
    sigaction(signal, &action, &actions_before_.emplace_back());
  }
  tcgetattr(STDIN_FILENO, &before_);
  // Each key is read as it is typed, and is not shown. Ctrl-C is read as a key, so that it cannot
  // end kvcli before the terminal is as it was.
  termios keys = before_;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
  tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  Write(kEnter);
}

Screen::~Screen() {
  Write(kLeave);
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &actions_before_[i], nullptr);
  }
}

ViewSize Screen::Size() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

// Overwrites what is there, without clearing it first, so that nothing flickers.
void Screen::Draw(std::span<const ViewLine> lines) {
  std::string text = kHome;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += "\r\n";
    if (lines[i].heading) text += kReverse;
    text += lines[i].text;
    if (lines[i].heading) text += kPlain;
    text += kClearRestOfLine;
  }
  Write(text + kClearBelow);
}

// Looks at the signals from time to time, because one may come just before the wait begins.
Screen::Event Screen::Wait(std::chrono::nanoseconds time) {
  constexpr std::chrono::milliseconds kLook{100};
  const auto end = std::chrono::steady_clock::now() + time;
  while (ended == 0) {
    if (resized != 0) {
      resized = 0;
      return Event::kResized;
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd in{STDIN_FILENO, POLLIN, 0};
    const auto slice = std::clamp(left, std::chrono::milliseconds(0), kLook);
    if (poll(&in, 1, static_cast<int>(slice.count())) > 0) {
      char key = 0;
      const ssize_t n = read(STDIN_FILENO, &key, 1);
      const bool gone = n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
      if (gone || key == 'q' || key == 'Q' || key == kCtrlC) return Event::kQuit;
    } else if (left.count() <= 0) {
      return Event::kTime;
    }
  }
  return Event::kQuit;
}

}  // namespace gannet::kvcli
