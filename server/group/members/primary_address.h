#ifndef GANNET_SERVER_GROUP_MEMBERS_PRIMARY_ADDRESS_H_
#define GANNET_SERVER_GROUP_MEMBERS_PRIMARY_ADDRESS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rdma/address.h"
#include "common/rdma/name_lookup.h"

namespace gannet {

// Where a backup finds its primary. DNS may take seconds, in which the member's thread has beacons
// to answer, and perhaps a primary to succeed. So a name is looked up in another thread.
//
// Owner thread only.
class PrimaryAddress {
 public:
  using Resolver =
      std::function<absl::StatusOr<std::vector<SocketAddress>>(const std::string& endpoint)>;

  // `resolve` is called in another thread, perhaps after this object is gone.
  explicit PrimaryAddress(Resolver resolve) : resolve_(std::move(resolve)) {}

  // Returns the address of "HOST:PORT", or nullopt if it is not known yet: then ask again. Never
  // blocks. A name that is known is looked up again, as its address may have changed; meanwhile it
  // has the last one.
  std::optional<SocketAddress> Find(const std::string& endpoint);

 private:
  const Resolver resolve_;
  std::string endpoint_;  // that `lookup_` looks up
  std::unique_ptr<NameLookup> lookup_;
  std::optional<SocketAddress> found_;  // of `endpoint_`
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_PRIMARY_ADDRESS_H_
