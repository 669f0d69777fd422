#ifndef GANNET_CLIENT_WALK_CLUSTER_WALK_H_
#define GANNET_CLIENT_WALK_CLUSTER_WALK_H_

#include <gannet/walker.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/walk/partitions_to_walk.h"
#include "client/walk/region_walk.h"
#include "common/base/client_clock.h"

namespace gannet {

// A walk through one server, or through all groups of the cluster that the server is of, one after
// the other. Of a cluster it shows a key only at the group that owns it (PartitionsToWalk), and
// what it READs of a group counts only under a lease for the map by which it does so: a group that
// has closed a partition since gives none, and then the walk asks it for the newer map.
//
// One thread.
class ClusterWalk final : private MapOfWalk {
 public:
  // `clock` outlives it.
  static absl::StatusOr<std::unique_ptr<ClusterWalk>> Connect(std::string endpoint,
                                                              const Options& options,
                                                              const WalkOptions& walk,
                                                              const ClientClock& clock);

  // As Walker's.
  absl::Status Walk(absl::FunctionRef<bool(const WalkedItem&)> show);
  absl::StatusOr<uint64_t> WalkPart(const WalkPartOptions& part,
                                    absl::FunctionRef<void(const WalkedItem&)> show);
  WalkProgress progress() const;
  // The server, or the group that was walked through last.
  RegionWalk& region() { return *region_; }

 private:
  ClusterWalk(std::string endpoint, const Options& options, const WalkOptions& walk,
              const ClientClock& clock)
      : endpoint_(std::move(endpoint)), options_(options), walk_(walk), clock_(clock) {}

  absl::Status ConnectTo(const std::string& endpoint);
  // Looks whether there is a map, and a newer one.
  absl::Status LookAtMap();
  // Asks for the map, and takes it if it is newer. NotFound, Unimplemented: there is none.
  absl::Status TakeMap();
  // MapOfWalk. The group that is walked through has closed a partition: waits until it tells the
  // map by which.
  bool Shows(std::string_view key) const override { return left_->Shows(key); }
  absl::Status OnOldMap() override;
  // Asks for the map until done() returns true.
  absl::Status WaitForMap(absl::FunctionRef<bool()> done);
  // Makes region_ that of a group, by its place in the map.
  absl::Status GoTo(size_t group);
  // The walk through region_ is over.
  void EndGroup();

  const std::string endpoint_;  // as the user wrote it
  const Options options_;
  const WalkOptions walk_;
  const ClientClock& clock_;
  std::unique_ptr<RegionWalk> region_;
  std::string group_;  // the name of its group; empty: not known
  // Null: the server is in no cluster, or the walk is of this server alone.
  std::optional<PartitionsToWalk> left_;
  WalkProgress before_;        // of the groups before
  bool region_walks_ = false;  // it is walked through, so its progress counts, too
};

}  // namespace gannet

#endif  // GANNET_CLIENT_WALK_CLUSTER_WALK_H_
