#ifndef GANNET_PROXY_JOBS_CLIENT_LIST_H_
#define GANNET_PROXY_JOBS_CLIENT_LIST_H_

#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <string_view>

#include "common/base/mutex.h"

namespace gannet::proxy {

struct ClientState;

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
    uint8_t database = 0;
    std::time_t since = 0;
    int socket = -1;
  };

  // Which connections to end. All that it names must fit.
  struct Filter {
    uint64_t id = 0;           // 0: any
    std::string_view address;  // empty: any
    uint64_t skipped = 0;      // this one stays
  };

  // `socket` is the connection's, and open until Remove.
  void Add(uint64_t id, std::string address, int socket);
  void Remove(uint64_t id);
  // Shuts the sockets of those that fit, and returns how many fit. That of `own` stays open, since
  // it is to be answered: tells whether it fits.
  size_t End(const Filter& filter, uint64_t own, bool* with_own);
  void Change(const ClientState& client);
  // Returns a line for each connection, or the line of one.
  std::string Lines() const;
  std::string Line(uint64_t id) const;

 private:
  mutable Mutex mutex_;
  std::map<uint64_t, Entry> entries_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_CLIENT_LIST_H_
