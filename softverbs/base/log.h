#ifndef SOFTVERBS_BASE_LOG_H_
#define SOFTVERBS_BASE_LOG_H_

namespace softverbs {

// True when SOFTVERBS_VERBOSE is set to something but 0. The library never prints otherwise: it is
// loaded into programs that know nothing of it.
bool Verbose();

// printf to stderr, one line, prefixed with "softverbs[pid]: ", when Verbose(). Misuse by the
// application and refused peers are reported here. Keeps errno.
void Report(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_LOG_H_
