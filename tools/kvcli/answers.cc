#include "tools/kvcli/answers.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gannet::kvcli {
namespace {

int first_error = 0;

}  // namespace

// What could not be written is dropped by the C library, so only the first try knows the reason.
bool FlushAnswers() {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (!flushed && first_error == 0) first_error = errno;
  return flushed && std::ferror(stdout) == 0;
}

bool ReaderIsGone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

bool AnswersAreRead() { return std::ferror(stdout) == 0; }

std::string WhyNotWritten() { return first_error == 0 ? "" : std::strerror(first_error); }

}  // namespace gannet::kvcli
