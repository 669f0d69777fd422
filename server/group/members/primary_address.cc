#include "server/group/members/primary_address.h"

#include "common/protocol/limits.h"

namespace gannet {

std::optional<SocketAddress> PrimaryAddress::Find(const std::string& endpoint) {
  if (const auto numeric = NumericAddress(endpoint, kDefaultPort)) return numeric;
  if (endpoint != endpoint_) {
    endpoint_ = endpoint;
    found_.reset();
    lookup_ =
        std::make_unique<NameLookup>([resolve = resolve_, endpoint] { return resolve(endpoint); });
  }
  lookup_->Ask();
  if (const auto addresses = lookup_->Take()) found_ = addresses->front();
  return found_;
}

}  // namespace gannet
