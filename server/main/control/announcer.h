#ifndef GANNET_SERVER_MAIN_CONTROL_ANNOUNCER_H_
#define GANNET_SERVER_MAIN_CONTROL_ANNOUNCER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/wake_up.h"
#include "common/protocol/announce.h"
#include "common/rdma/address.h"
#include "common/rdma/multicast.h"
#include "server/main/control/server.h"

namespace gannet {

// Tells a multicast group once a second where the server is, for kvcli discover. Has a thread of
// its own. If the network takes no datagrams any more, it says so in the log and tries again.
class Announcer {
 public:
  static constexpr int64_t kEveryNs = 1'000'000'000;

  struct Options {
    std::string group;       // an IPv4 or IPv6 multicast address; empty: nothing is announced
    std::string cluster;     // empty: the server is alone
    std::string group_name;  // of the cluster's group
    std::string name;
    std::string address;  // HOST:PORT, for clients
  };

  // Returns InvalidArgument unless this is a multicast address, a number.
  static absl::Status CheckGroup(const std::string& group);

  // Returns null if there is nothing to announce. Joins the group by the device that the server's
  // address is on, if it listens on one address. FailedPrecondition, Unavailable, DeadlineExceeded:
  // it cannot be joined. InvalidArgument: the server listens on every address, so there is none to
  // announce. `server` outlives this.
  static absl::StatusOr<std::unique_ptr<Announcer>> Start(const Options& options,
                                                          const Server* server);
  ~Announcer();
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

 private:
  Announcer(const Options& options, const Server* server, std::unique_ptr<MulticastMember> member,
            std::unique_ptr<WakeUp> stop)
      : options_(options), server_(server), member_(std::move(member)), stop_(std::move(stop)) {}
  void Run();

  const Options options_;  // complete
  const Server* const server_;
  const std::unique_ptr<MulticastMember> member_;
  const std::unique_ptr<WakeUp> stop_;
  std::thread thread_;
};

// Returns what a server says of itself. `number` counts its announcements.
ServerAnnouncement AnnouncementOf(const Announcer::Options& options, const Member* member,
                                  uint64_t number);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_ANNOUNCER_H_
