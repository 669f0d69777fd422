#ifndef GANNET_TOOLS_KVCLI_SCREEN_H_
#define GANNET_TOOLS_KVCLI_SCREEN_H_

#include <termios.h>

#include <chrono>
#include <csignal>
#include <span>
#include <vector>

#include "tools/kvcli/top_view.h"

namespace gannet::kvcli {

// The whole terminal, for a view that is drawn again and again. The terminal is as before when this
// ends: by q, Ctrl-C, SIGTERM or SIGHUP too. At most one at a time, one thread.
class Screen {
 public:
  // Returns whether stdin and stdout are a terminal.
  static bool IsThere();

  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  ViewSize Size() const;
  void Draw(std::span<const ViewLine> lines);

  enum class Event {
    kTime,     // the time is over
    kResized,  // the window has another size
    kQuit,     // the user wants to leave
  };
  // Waits so long for something else to happen.
  Event Wait(std::chrono::nanoseconds time);

 private:
  termios before_{};
  std::vector<struct sigaction> actions_before_;
};

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_SCREEN_H_
