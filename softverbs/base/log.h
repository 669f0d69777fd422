#ifndef SOFTVERBS_BASE_LOG_H_
#define SOFTVERBS_BASE_LOG_H_

namespace softverbs {

// Returns whether SOFTVERBS_VERBOSE is set to something other than 0. Otherwise the library never
// prints, because it is loaded into programs that do not know about it.
bool Verbose();

// If Verbose(), prints one line to stderr, prefixed with "softverbs[pid]: ". Reports misuse by the
// application and refused peers. Keeps errno.
void Report(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_LOG_H_
