#ifndef GANNET_SERVER_GROUP_MEMBERS_LINE_LOG_H_
#define GANNET_SERVER_GROUP_MEMBERS_LINE_LOG_H_

#include <string>
#include <utility>

#include "glog/logging.h"

namespace gannet {

// Logs what a backup does or waits for. It finds that out again at each try, so a line that is the
// same as the one before is not logged.
//
// Owner thread only.
class LineLog {
 public:
  void Add(const std::string& line) {
    if (std::exchange(last_, line) != line) LOG(INFO) << line;
  }

 private:
  std::string last_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_LINE_LOG_H_
