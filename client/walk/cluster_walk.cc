// Goes from group to group by one map. A position cannot tell which partitions are left, so the
// walk begins anew with each newer map, and waits for one by which all partitions are served.

#include "client/walk/cluster_walk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/walk/cluster_cursor.h"
#include "common/base/clock.h"
#include "common/base/server_list.h"
#include "common/base/status_macros.h"

namespace gannet {
namespace {

constexpr int64_t kMapPauseNs = 5 * kNsPerMs;  // between two questions for the map

// How long a map is, of which these are the first bytes.
size_t BytesOfMap(const std::string& bytes) {
  const std::optional<PartitionMapStart> start = StartOfMap(bytes);
  return start ? std::min<size_t>(start->bytes, kPartitionMapBytesMax) : 0;
}

void Add(const WalkProgress& part, WalkProgress* sum) {
  sum->reads += part.reads;
  sum->read_bytes += part.read_bytes;
  sum->items += part.items;
  sum->retries += part.retries;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClusterWalk>> ClusterWalk::Connect(std::string endpoint,
                                                                  const Options& options,
                                                                  const WalkOptions& walk,
                                                                  const ClientClock& clock) {
  std::unique_ptr<ClusterWalk> made(new ClusterWalk(std::move(endpoint), options, walk, clock));
  GANNET_RETURN_IF_ERROR(made->ConnectTo(made->endpoint_));
  return made;
}

absl::Status ClusterWalk::ConnectTo(const std::string& endpoint) {
  group_.clear();
  region_walks_ = false;
  GANNET_ASSIGN_OR_RETURN(region_, RegionWalk::Connect(endpoint, options_, walk_, clock_));
  return absl::OkStatus();
}

absl::Status ClusterWalk::LookAtMap() {
  if (walk_.this_server_alone) return absl::OkStatus();
  if (!region_->ready()) GANNET_RETURN_IF_ERROR(ConnectTo(endpoint_));
  const absl::Status status =
      region_->in_group() ? TakeMap() : absl::NotFoundError("the server is in no group");
  if (!absl::IsNotFound(status) && !absl::IsUnimplemented(status)) return status;
  left_.reset();
  return absl::OkStatus();
}

// A map may change between two pieces, which do not fit together then.
absl::Status ClusterWalk::TakeMap() {
  const int64_t until_ns = clock_.MonotonicNs() + options_.deadline.count() * kNsPerMs;
  while (clock_.MonotonicNs() < until_ns) {
    std::string bytes;
    for (bool more = true; more; more = bytes.size() < BytesOfMap(bytes)) {
      GANNET_ASSIGN_OR_RETURN(const std::string piece, region_->AskForMap(bytes.size()));
      bytes += piece;
      if (left_ && RevisionOfMap(bytes) == left_->map().revision) return absl::OkStatus();
      if (piece.empty()) break;
    }
    if (std::optional<PartitionMap> map = DecodePartitionMap(bytes)) {
      if (left_) {
        left_->OnMap(*std::move(map));
      } else {
        left_.emplace(*std::move(map));
      }
      return absl::OkStatus();
    }
    GANNET_RETURN_IF_ERROR(region_->WaitFor(kMapPauseNs));
  }
  return absl::DeadlineExceededError(absl::StrCat(region_->endpoint(), ": no whole map in time"));
}

absl::Status ClusterWalk::OnOldMap() {
  return WaitForMap([this] {
    region_->SetMapRevision(left_->map().revision);
    return !region_->map_is_old();
  });
}

absl::Status ClusterWalk::WaitForMap(absl::FunctionRef<bool()> done) {
  const int64_t until_ns = clock_.MonotonicNs() + options_.deadline.count() * kNsPerMs;
  for (;;) {
    GANNET_RETURN_IF_ERROR(TakeMap());
    if (done()) return absl::OkStatus();
    if (clock_.MonotonicNs() >= until_ns) {
      return absl::UnavailableError(absl::StrCat(
          region_->endpoint(), ": partitions move, and nobody has served them for too long"));
    }
    GANNET_RETURN_IF_ERROR(region_->WaitFor(kMapPauseNs));
  }
}

absl::Status ClusterWalk::GoTo(size_t group) {
  const std::vector<PartitionMap::Group>& groups = left_->map().groups;
  const std::vector<std::string>& addresses = groups[group].addresses;
  const bool is_there =
      region_->ready() && (group_ == groups[group].name || groups.size() == 1 ||
                           std::ranges::find(addresses, region_->address()) != addresses.end());
  if (!is_there) {
    if (addresses.empty()) {
      return absl::UnavailableError(
          absl::StrCat("no member of group ", groups[group].name, " has been started yet"));
    }
    GANNET_RETURN_IF_ERROR(ConnectTo(std::string(kGroupPrefix) + absl::StrJoin(addresses, ",")));
  }
  group_ = groups[group].name;
  region_walks_ = true;
  region_->GoByMap(left_->map().revision, this);
  return absl::OkStatus();
}

void ClusterWalk::EndGroup() {
  Add(region_->progress(), &before_);
  region_walks_ = false;
  left_->End();
}

absl::Status ClusterWalk::Walk(absl::FunctionRef<bool(const WalkedItem&)> show) {
  before_ = {};
  GANNET_RETURN_IF_ERROR(LookAtMap());
  if (!left_) return region_->Walk(show);
  left_->BeginAnew();
  bool goes_on = true;
  while (goes_on && !left_->done()) {
    const std::optional<size_t> group = left_->Begin();
    if (!group) {
      GANNET_RETURN_IF_ERROR(WaitForMap([this] { return left_->Begin().has_value(); }));
      continue;
    }
    GANNET_RETURN_IF_ERROR(GoTo(*group));
    GANNET_RETURN_IF_ERROR(
        region_->Walk([&](const WalkedItem& item) { return goes_on = show(item); }));
    if (goes_on) EndGroup();
  }
  return absl::OkStatus();
}

// A position cannot tell which partitions are left. So the walk begins anew with each map, and by a
// map by which all partitions are served.
absl::StatusOr<uint64_t> ClusterWalk::WalkPart(const WalkPartOptions& part,
                                               absl::FunctionRef<void(const WalkedItem&)> show) {
  before_ = {};
  GANNET_RETURN_IF_ERROR(LookAtMap());
  if (!left_) {
    WalkPartOptions at_hash = part;
    at_hash.position = ReversedBits(part.position);
    GANNET_ASSIGN_OR_RETURN(const uint64_t next,
                            region_->WalkPart(at_hash, show, Walker::kPositionBits));
    return ReversedBits(next);
  }
  const auto is_enough = [&] {
    return before_.items >= part.items_min || before_.reads >= part.reads_max;
  };
  const auto groups = [this] { return left_->map().groups.size(); };
  ClusterCursor at = ClusterCursor::Decode(part.position, groups());
  do {
    if (!left_->all_served()) {
      GANNET_RETURN_IF_ERROR(WaitForMap([this] { return left_->all_served(); }));
    }
    const uint64_t revision = left_->map().revision;
    if (at.revision_bits != ClusterCursor::RevisionBits(revision)) {
      at = {.revision_bits = ClusterCursor::RevisionBits(revision)};
    }
    left_->BeginAnew();
    uint64_t next = 0;
    if (at.group < groups() && left_->BeginGroup(at.group)) {
      GANNET_RETURN_IF_ERROR(GoTo(at.group));
      const WalkPartOptions rest = {.position = at.position,
                                    .items_min = part.items_min - before_.items,
                                    .reads_max = part.reads_max - before_.reads};
      GANNET_ASSIGN_OR_RETURN(next,
                              region_->WalkPart(rest, show, ClusterCursor::PositionBits(groups())));
      EndGroup();
    }
    if (left_->map().revision != revision) {
      at = {};
      continue;
    }
    at.position = next;
    if (next == 0 && ++at.group >= groups()) return 0;
  } while (!is_enough());
  if (at.revision_bits == 0) at.revision_bits = ClusterCursor::RevisionBits(left_->map().revision);
  return at.Encode(groups());
}

WalkProgress ClusterWalk::progress() const {
  if (!left_) return region_->progress();
  WalkProgress sum = before_;
  sum.done = left_->share();
  if (!region_walks_) return sum;
  const WalkProgress now = region_->progress();
  Add(now, &sum);
  sum.done += now.done * static_cast<double>(left_->now().count()) / kPartitions;
  return sum;
}

}  // namespace gannet
