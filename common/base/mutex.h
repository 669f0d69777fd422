#ifndef GANNET_COMMON_BASE_MUTEX_H_
#define GANNET_COMMON_BASE_MUTEX_H_

#include <condition_variable>
#include <mutex>

// std::mutex with Clang's thread-safety annotations. absl::Mutex is not used because Debian's
// abseil is not instrumented, so TSan reports false races.

#if defined(__clang__)
#define GANNET_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define GANNET_THREAD_ANNOTATION(x)
#endif
#define GANNET_GUARDED_BY(x) GANNET_THREAD_ANNOTATION(guarded_by(x))
#define GANNET_REQUIRES(...) GANNET_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define GANNET_EXCLUDES(...) GANNET_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
// For functions that take a number of locks known only at run time. Clang cannot follow these.
#define GANNET_UNCHECKED_LOCKS GANNET_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace gannet {

class GANNET_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void Lock() GANNET_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void Unlock() GANNET_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

class GANNET_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) GANNET_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() GANNET_THREAD_ANNOTATION(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_MUTEX_H_
