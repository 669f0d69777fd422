#ifndef GANNET_TOOLS_KVCLI_HOT_KEY_SAMPLER_H_
#define GANNET_TOOLS_KVCLI_HOT_KEY_SAMPLER_H_

#include <gannet/walker.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "tools/kvcli/top_change.h"

namespace gannet::kvcli {

// Looks for the keys of a server that are used most, again and again. In a thread of its own,
// because a look READs the server's whole index, which takes longer than a view may wait.
//
// Thread safety: all methods may be called from any thread.
class HotKeySampler {
 public:
  // A look finds at most `count` keys.
  HotKeySampler(std::string server, Options options, size_t count);
  ~HotKeySampler();
  HotKeySampler(const HotKeySampler&) = delete;
  HotKeySampler& operator=(const HotKeySampler&) = delete;

  // Returns what the last look found.
  HotKeysLook Latest() const;

 private:
  void Run();
  HotKeysLook LookOnce();

  const std::string server_;
  const Options options_;
  const size_t count_;
  std::unique_ptr<Walker> walker_;  // only the thread's; null: not connected
  std::atomic<bool> stops_{false};  // relaxed: nothing is published with it
  mutable std::mutex mutex_;
  std::condition_variable stopping_;
  HotKeysLook latest_;  // guarded by mutex_
  std::thread thread_;  // the last, since it uses the others
};

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_HOT_KEY_SAMPLER_H_
