#ifndef GANNET_SERVER_MEMORY_TIER_TIER_THREAD_H_
#define GANNET_SERVER_MEMORY_TIER_TIER_THREAD_H_

#include <memory>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/wake_up.h"
#include "server/memory/tier/tier_writer.h"

namespace gannet {

// The thread that polls a TierWriter, and sleeps while there is nothing to write.
class TierThread {
 public:
  // `wanted` asks it to look for values. Both outlive the thread. ResourceExhausted: no file
  // descriptor.
  static absl::StatusOr<std::unique_ptr<TierThread>> Start(TierWriter* writer, WakeUp* wanted);
  // Ends the thread behind the write that is under way.
  ~TierThread();
  // TierWriter's, by the thread's clock.
  TierWriter::Disk disk() const;
  TierThread(const TierThread&) = delete;
  TierThread& operator=(const TierThread&) = delete;

 private:
  TierThread(TierWriter* writer, WakeUp* wanted, std::unique_ptr<WakeUp> stop)
      : writer_(writer), wanted_(wanted), stop_(std::move(stop)) {}
  void Run();

  TierWriter* const writer_;
  WakeUp* const wanted_;
  const std::unique_ptr<WakeUp> stop_;
  std::thread thread_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_TIER_TIER_THREAD_H_
