#ifndef GANNET_PROXY_JOBS_CLIENT_LIST_H_
#define GANNET_PROXY_JOBS_CLIENT_LIST_H_

#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <string_view>

#include "common/base/mutex.h"

namespace gannet::proxy {

// The connections of applications, of all threads, as CLIENT LIST shows them. It changes when a
// connection begins, ends or names itself.
//
// Thread safety: all methods may be called from any thread.
class ClientList {
 public:
  struct Entry {
    std::string address;
    std::string name;
    bool resp3 = false;
    std::time_t since = 0;
  };

  void Add(uint64_t id, std::string address);
  void Remove(uint64_t id);
  void Change(uint64_t id, std::string_view name, bool resp3);
  // Returns a line for each connection, or the line of one.
  std::string Lines() const;
  std::string Line(uint64_t id) const;

 private:
  mutable Mutex mutex_;
  std::map<uint64_t, Entry> entries_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_CLIENT_LIST_H_
