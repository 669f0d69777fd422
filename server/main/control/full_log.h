#ifndef GANNET_SERVER_MAIN_CONTROL_FULL_LOG_H_
#define GANNET_SERVER_MAIN_CONTROL_FULL_LOG_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/boot_time.h"
#include "common/protocol/message.h"

namespace gannet {

// What the server's log says of writes that were refused because the heap or the index is full: at
// most one line a minute for each, with the number since the last line.
class FullLog {
 public:
  struct Lines {
    std::optional<std::string> heap;
    std::optional<std::string> index;
  };
  Lines Report(const StatsReply& stats, BootTime now);

 private:
  struct Counter {
    // Returns how many are new. 0: there is nothing to say yet.
    uint64_t TakeNew(uint64_t refused, BootTime now);

    uint64_t said = 0;
    BootTime quiet_until;
  };
  Counter heap_;
  Counter index_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_FULL_LOG_H_
