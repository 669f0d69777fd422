#ifndef SOFTVERBS_BASE_ERRNO_H_
#define SOFTVERBS_BASE_ERRNO_H_

#include <cerrno>

namespace softverbs {

// Returns the error number that a verb is about to return, and sets errno to it too. The man pages
// do not demand that, but real libraries leave the number there, and programs call perror. Leaves
// errno alone if `error` is 0.
inline int WithErrno(int error) {
  if (error != 0) [[unlikely]]
    errno = error;
  return error;
}

// Does so for verbs that return a pointer.
template <class T>
T* NullWithErrno(int error) {
  errno = error;
  return nullptr;
}

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_ERRNO_H_
