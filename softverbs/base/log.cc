#include "softverbs/base/log.h"

#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace softverbs {

bool Verbose() {
  static const bool verbose = [] {
    const char* value = getenv("SOFTVERBS_VERBOSE");
    return value != nullptr && strcmp(value, "0") != 0 && *value != '\0';
  }();
  return verbose;
}

void Report(const char* format, ...) {
  if (!Verbose()) return;
  const int saved_errno = errno;
  char line[512];
  int used = snprintf(line, sizeof(line), "softverbs[%d]: ", getpid());
  va_list args;
  va_start(args, format);
  used += vsnprintf(line + used, sizeof(line) - used, format, args);
  va_end(args);
  if (used > static_cast<int>(sizeof(line)) - 2) used = sizeof(line) - 2;
  line[used++] = '\n';
  if (write(STDERR_FILENO, line, used) < 0) errno = saved_errno;
  errno = saved_errno;
}

}  // namespace softverbs
