#ifndef GANNET_COMMON_RDMA_NAME_LOOKUP_H_
#define GANNET_COMMON_RDMA_NAME_LOOKUP_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rdma/address.h"

namespace gannet {

// Looks names up again while its owner goes on. DNS may take seconds, and a pod that is restarted
// has another address than before.
//
// A lookup runs in a thread of its own, which ends with it. The thread outlives this object if DNS
// does not answer; it touches nothing of it then.
//
// One owner thread.
class NameLookup {
 public:
  using Resolver = std::function<absl::StatusOr<std::vector<SocketAddress>>()>;

  // `resolve` is called in the other thread.
  explicit NameLookup(Resolver resolve);

  // Begins a lookup, unless one is under way, or one began within a second.
  void Ask();
  // Returns the addresses that the last lookup found, once. nullopt: there is nothing new, or the
  // names are not known now.
  std::optional<std::vector<SocketAddress>> Take();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_NAME_LOOKUP_H_
