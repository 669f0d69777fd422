#ifndef GANNET_CLIENT_ENGINE_HIT_REPORTS_H_
#define GANNET_CLIENT_ENGINE_HIT_REPORTS_H_

#include <gannet/async_client.h>

#include <cstddef>
#include <span>

#include "common/base/data_path_checks.h"

namespace gannet {

// Where the caller of Engine::Poll wants to be told at once of GETs that found their item. One
// owner thread.
class HitReports {
 public:
  // A Poll begins.
  void Begin(std::span<Completion> completions) {
    next_ = completions.data();
    limit_ = next_ + completions.size();
  }
  bool full() const { return next_ == limit_; }
  // Returns the next one, which the caller fills in. REQUIRES: not full.
  Completion& Next() {
    GANNET_CHECK_DATA_PATH(!full(), "more hits than the caller has room for");
    return *next_++;
  }
  // Where the next one will be.
  const Completion* end() const { return next_; }

 private:
  Completion* next_ = nullptr;
  Completion* limit_ = nullptr;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_HIT_REPORTS_H_
