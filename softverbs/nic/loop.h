#ifndef SOFTVERBS_NIC_LOOP_H_
#define SOFTVERBS_NIC_LOOP_H_

#include <cstdint>
#include <functional>

namespace softverbs {

// The process's one background thread: an event loop for descriptors, timers and posted work.
// While it has nothing to do, it blocks in epoll without a timeout and uses no CPU.
//
// 1. Handlers run on the loop thread, one at a time, with none of the loop's locks held.
// 2. A handler must not block: every connection of the process waits behind it.
// 3. All methods are thread safe and may be called from handlers.
// 4. The thread blocks all signals and lives until the process ends; it is never joined.
// 5. A forked child has no such thread. Get() makes a new loop there, and the old one is forgotten.
class Loop {
 public:
  // Starts the thread unless it runs. Returns false and sets errno if there are no descriptors
  // left.
  static bool Start();
  // Starts the thread on first use. Aborts if it cannot, so calls that can fail call Start() first.
  static Loop& Get();
  // Makes Get return `loop` instead. Returns false if Get already returned another one.
  static bool Install(Loop* loop);

  using Handler = std::function<void(uint32_t epoll_events)>;
  using Watch = uint64_t;  // never 0, never reused
  // Watches `fd`, level-triggered, until Remove. Does not own it. REQUIRES: fd stays open until
  // Remove returned; fd is not watched already.
  virtual Watch Add(int fd, uint32_t epoll_events, Handler handler) = 0;
  // Changes what is watched for. Ignores an unknown or removed watch.
  virtual void Modify(Watch watch, uint32_t epoll_events) = 0;
  // Stops watching. After the return the handler neither runs nor will run, and its captures are
  // destroyed, unless the handler itself calls this. Ignores an unknown or removed watch.
  virtual void Remove(Watch watch) = 0;

  using Timer = uint64_t;  // never 0, never reused
  // Runs `fn` once, not before CLOCK_MONOTONIC reaches `monotonic_ns`.
  virtual Timer RunAt(int64_t monotonic_ns, std::function<void()> fn) = 0;
  // Cancels the timer. After the return fn neither runs nor will run, unless fn itself calls this.
  virtual void Cancel(Timer timer) = 0;

  // Runs `fn` soon.
  virtual void Post(std::function<void()> fn) = 0;

  virtual bool OnLoopThread() const = 0;

  // Returns true for the loop of a simulation, which has no thread.
  virtual bool Simulated() const { return false; }

 protected:
  ~Loop() = default;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_LOOP_H_
