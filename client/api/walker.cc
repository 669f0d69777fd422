#include <gannet/walker.h>

#include <utility>

#include "client/walk/cluster_walk.h"
#include "common/base/client_clock.h"

namespace gannet {

class Walker::State {
 public:
  explicit State(std::unique_ptr<ClusterWalk> made) : walk(std::move(made)) {}
  std::unique_ptr<ClusterWalk> walk;
};

absl::StatusOr<std::unique_ptr<Walker>> Walker::Connect(std::string endpoint, Options options,
                                                        WalkOptions walk) {
  absl::StatusOr<std::unique_ptr<ClusterWalk>> made =
      ClusterWalk::Connect(std::move(endpoint), options, walk, ClientClock::Real());
  if (!made.ok()) return made.status();
  return std::unique_ptr<Walker>(new Walker(std::make_unique<State>(*std::move(made))));
}

Walker::Walker(std::unique_ptr<State> state) : state_(std::move(state)) {}
Walker::~Walker() = default;

absl::Status Walker::Walk(const std::function<bool(const WalkedItem&)>& show) {
  return state_->walk->Walk(show);
}

absl::StatusOr<uint64_t> Walker::WalkPart(const WalkPartOptions& part,
                                          const std::function<void(const WalkedItem&)>& show) {
  return state_->walk->WalkPart(part, show);
}

absl::Status Walker::ReadOnce(uint32_t bytes) { return state_->walk->region().ReadOnce(bytes); }

std::chrono::milliseconds Walker::ServerClockAhead() const {
  return std::chrono::milliseconds(state_->walk->region().ServerClockAheadMs());
}

absl::StatusOr<std::vector<HotKey>> Walker::HotKeys(size_t count,
                                                    const std::function<bool()>& goes_on) {
  return state_->walk->region().HotKeys(count, [&] { return !goes_on || goes_on(); });
}

WalkProgress Walker::progress() const { return state_->walk->progress(); }

}  // namespace gannet
